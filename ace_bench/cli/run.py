"""``ace-bench run task=finer method=ace``: one experiment, or several with ``--multirun``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

_SEARCH = "hparams_search="
_PLUS = re.compile(rf"^\+(?=(experiment|debug|{_SEARCH[:-1]})=)")
"""Presets are in the defaults list, where Hydra does not accept ``+``, but many users type it."""
_FOR_HYDRA = re.compile(r"-|[+~]*hydra[./]")
"""Words that say how Hydra works; without them and sweeps a configuration is composed without Hydra's command line."""


def main(arguments: Sequence[str]) -> int:
    """Run what the overrides describe. Return or exit with the status that ``runners.run.RunEnd`` documents."""
    if {"-h", "--help"} & set(arguments):
        from ace_bench.cli.run_help import help_text

        sys.stdout.write(help_text(arguments))
        return 0
    overrides = [_PLUS.sub("", argument) for argument in arguments]
    sweeps = bool({"-m", "--multirun"} & set(overrides)) or any(word.startswith(_SEARCH) for word in overrides)
    if not sweeps:
        _refuse_launcher(overrides)
    if sweeps or any(map(_FOR_HYDRA.match, overrides)):
        from ace_bench.cli.experiment import call_hydra

        call_hydra(overrides, sweeps=sweeps)
        return 0
    from ace_bench.cli.base_comparison import run_beside_base
    from ace_bench.core.terminal import log_to_stdout
    from ace_bench.runners.composing import compose_run
    from ace_bench.runners.host import reporting
    from ace_bench.store.processes import command_of

    log_to_stdout()
    with reporting(command_of(overrides)) as report:
        run_beside_base(compose_run(overrides), report.host)
    return report.status


def _refuse_launcher(arguments: Sequence[str]) -> None:
    """Raise ``ConfigError`` for a launcher with a single run, as launchers only start sweeps."""
    from ace_bench.core.errors import ConfigError
    from ace_bench.core.resources import config_folders, options

    chosen = [word for word in arguments if word.startswith("launcher=")]
    if chosen and chosen[-1].partition("=")[2] in options("launcher", config_folders()):
        raise ConfigError(f"{chosen[-1]} starts the runs of a sweep: add --multirun, or leave it out")
