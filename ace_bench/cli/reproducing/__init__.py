"""Making the paper's results again: which runs, how they stand, what they would cost, and running them."""
