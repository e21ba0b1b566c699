"""ACE, the algorithm of the paper: the method beside figure 4, its roles and replies, its ablations by table."""
