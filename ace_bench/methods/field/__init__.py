"""Guest: memories of the field (StreamBench's, AWM, ReasoningBank, Reflexion) and plain baselines."""
