"""Checks of what results mean: transfer, placebos, contamination, judges, sources of variance, sample efficiency."""
