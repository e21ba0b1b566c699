"""Simulated scores and claims with known truth: `make statistics`."""
