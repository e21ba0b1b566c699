"""What other packages add to the configuration, where Hydra looks for it."""
