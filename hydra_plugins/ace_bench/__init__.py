"""Plugins for Hydra, which takes launchers and sweepers from the namespace ``hydra_plugins`` alone."""
