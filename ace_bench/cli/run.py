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

        sys.stdout.write(help_text(arguments))
        return 0
    from ace_bench.cli.experiment import experiment, sweep
    from ace_bench.cli.run_options import settings_first
    from ace_bench.core.resources import config_folders
    from ace_bench.runners.override_help import explain_overrides

    words = [_PLUS.sub("", argument) for argument in arguments]
    sys.argv[1:] = settings_first(words)  # where Hydra looks for them
    with explain_overrides(config_folders(), sys.argv[1:]):
        if {"-m", "--multirun"} & set(arguments) or any(word.startswith(_SEARCH) for word in sys.argv):
            sweep()
        else:
            _refuse_launcher(words)
            experiment()
    return 0


def _refuse_launcher(words: Sequence[str]) -> None:
    """Raise ``ConfigError`` where a launcher is chosen for a single run, which it would not start."""
    from ace_bench.core.errors import ConfigError
    from ace_bench.core.resources import config_folders, options

    known = {f"launcher={name}" for name in options("launcher", config_folders())}
    if launcher := next(filter(known.__contains__, words), None):
        raise ConfigError(f"{launcher} starts the runs of a sweep: add --multirun, or leave it out")
