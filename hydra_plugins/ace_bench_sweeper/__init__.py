"""The Optuna sweeper, in the package where Hydra looks for plugins."""
