"""``ace-bench run task=finer method=ace``: one experiment, or several with ``--multirun``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run what the overrides describe; return or exit with the status that ``ace_bench.runners.run.run`` documents."""
    if {"-h", "--help"} & set(arguments):
        from ace_bench.cli.run_help import help_text

        sys.stdout.write(help_text())
        return 0
    from ace_bench.cli.experiment import experiment, sweep
    from ace_bench.core.resources import configs_folder
    from ace_bench.runners.override_help import explain_overrides

    sys.argv[1:] = arguments  # where Hydra looks for them
    with explain_overrides(configs_folder(), arguments):
        if {"-m", "--multirun"} & set(arguments):
            sweep()
        else:
            experiment()
    return 0
