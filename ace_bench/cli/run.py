"""``ace-bench run task=finer method=ace``: one experiment, or several with ``--multirun``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

_SEARCH = "hparams_search="
_PLUS = re.compile(rf"^\+(?=(experiment|debug|{_SEARCH[:-1]})=)")
"""Presets are in the defaults list, where Hydra does not accept ``+``, but many users type it."""


def main(arguments: Sequence[str]) -> int:
    """Run what the overrides describe; return or exit with the status that ``ace_bench.runners.run.run`` documents."""
    if {"-h", "--help"} & set(arguments):
        from ace_bench.cli.run_help import help_text

        sys.stdout.write(help_text())
        return 0
    from ace_bench.cli.experiment import experiment, sweep
    from ace_bench.core.resources import config_folders
    from ace_bench.runners.override_help import explain_overrides

    sys.argv[1:] = [_PLUS.sub("", argument) for argument in arguments]  # where Hydra looks for them
    with explain_overrides(config_folders(), sys.argv[1:]):
        if {"-m", "--multirun"} & set(arguments) or any(word.startswith(_SEARCH) for word in sys.argv):
            sweep()
        else:
            experiment()
    return 0
