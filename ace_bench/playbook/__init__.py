"""ACE's context: bullets with counters, typed deltas, grow-and-refine, and the text format."""
