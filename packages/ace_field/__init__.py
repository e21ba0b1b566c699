"""Guest: memories of the field: StreamBench's, Agent Workflow Memory, ReasoningBank and Reflexion."""
