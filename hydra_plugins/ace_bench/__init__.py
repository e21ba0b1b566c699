"""Plugins for Hydra, which only loads launchers and sweepers from the namespace ``hydra_plugins``."""
