"""The Ray launcher, in the package where Hydra looks for plugins."""
