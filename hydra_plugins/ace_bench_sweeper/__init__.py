"""The sweeper of a plan, in the package where Hydra looks for plugins."""
