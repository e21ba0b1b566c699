"""Launchers for sweeps, where Hydra looks for them."""
