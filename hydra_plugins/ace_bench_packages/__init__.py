"""Adds the configuration of other packages, in the package where Hydra looks for plugins."""
