"""A sweeper that searches settings, where Hydra looks for it."""
