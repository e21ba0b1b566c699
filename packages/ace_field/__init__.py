"""Guest: memories of the field: StreamBench's, Agent Workflow Memory, ReasoningBank, Reflexion, a heuristic, a long context."""
