"""ReAct: an agent that acts by code, step by step (paper, section 4.2), with an optional memory of the attempt."""
