"""ACE's settings and its ablations, each a replacement for one of its parts."""
