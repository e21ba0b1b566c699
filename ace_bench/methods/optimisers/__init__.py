"""Guest: GEPA and MIPROv2 by DSPy (paper, section 4.2); needs the extra ``optimisers``."""
