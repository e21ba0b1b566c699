"""A real Slurm of one node on this machine: `make test-slurm`."""
