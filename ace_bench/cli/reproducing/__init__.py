"""Reproducing the paper's results: which runs they need, their state, their cost, and running them."""
