"""Measures the harness itself: ``python -m benchmarks``, or ``make bench``."""
