"""The launchers of sweeps, in the package where Hydra looks for plugins."""
