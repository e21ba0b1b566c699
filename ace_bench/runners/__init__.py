"""How an experiment runs: assembly, the counted gateway, adaptation loops, evaluation, console."""
