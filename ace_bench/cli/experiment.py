"""Hydra's part: its options, the function that it calls with each composed configuration, and sweeps of such calls."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import takewhile

import hydra
import msgspec
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ace_bench.cli.arguments import print_line
from ace_bench.cli.sweep_summary import runs_listed
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import INTERRUPTED
from ace_bench.core.resources import config_folders, configs_folder
from ace_bench.core.scratch import scratch_folder
from ace_bench.report.planned import quote
from ace_bench.runners.composing import with_commit_apart
from ace_bench.runners.override_help import explain, raised_by_hydra

_LEFT_OUT = ("--shell-completion", "-sc")
"""Hydra's completion knows only a script's name. It calls a program of many commands with the command ``-sc``."""


def settings_first(arguments: Sequence[str]) -> list[str]:
    """Return the settings and then the options, because Hydra reads settings in one piece only.

    Raises ``ConfigError`` for an option that does not exist or has no value.
    """
    options = {
        name: action for name, action in get_args_parser()._option_string_actions.items() if name not in _LEFT_OUT
    }
    settings: list[str] = []
    flags: list[str] = []
    remaining = iter(arguments)
    for word in remaining:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            settings.append(word)
        elif name not in options:
            close = get_close_matches(name, options, n=1)
            hint = f"settings are written without dashes: {name.lstrip('-')}=VALUE"
            raise ConfigError(f"there is no option {name}; {f'did you mean {close[0]}?' if close else hint}")
        elif options[name].nargs is None:  # takes a value
            value = value if equals else next(remaining, "")
            choices = options[name].choices
            if not value or (choices is not None and value not in choices):
                expected = "a value" if choices is None else f"one of {', '.join(map(str, choices))}"
                raise ConfigError(f"{name} needs {expected}")
            flags += [name, value]
        else:
            flags.append(word)
    return [*settings, *flags]


_SLURM = "launcher=slurm"
_ELSEWHERE = (_SLURM, "hydra.launcher.init.address=")
"""Words of a sweep whose runs are on other machines."""


@hydra.main(version_base="1.3", config_path=str(configs_folder()), config_name="config")
def experiment(config: DictConfig) -> None:
    """Run one experiment; exits with its status unless that is 0. The runs of a sweep do not pass here."""
    from ace_bench.cli.base_comparison import run_beside_base
    from ace_bench.runners.composing import settle
    from ace_bench.runners.host import reporting
    from ace_bench.store.processes import command_of

    hydra_config = HydraConfig.get()
    with reporting(command_of(hydra_config.overrides.task)) as report:
        run_beside_base(settle(config, hydra_config.runtime.choices), report.host)
    if report.status:
        sys.exit(report.status)


def call_hydra(arguments: Sequence[str], *, sweeps: bool) -> None:
    """Let Hydra compose a run, or the runs of a sweep, and call ``experiment`` with each; its options may stop it."""
    sys.argv[1:] = settings_first(with_commit_apart(arguments))  # where Hydra looks for them
    with explain(config_folders(), sys.argv[1:]), raised_by_hydra():
        if sweeps:
            sweep()
        else:
            experiment()


def _check_runs(arguments: Sequence[str]) -> Sequence[Sequence[str]] | None:
    """Check all runs of a sweep, of a search one, and return those to make where they are fewer than its values name.

    Raises ``ConfigError`` if some cannot start, or are the same.
    """
    from ace_bench.runners.checking import Candidate, RunChecks
    from ace_bench.runners.planning import Composer

    compose = Composer(config_folders())
    settings = list(takewhile(lambda word: not word.startswith("-"), arguments))
    searches = any(word.startswith(("hparams_search=", "hydra/sweeper=")) for word in settings)
    try:
        runs = compose.sweep(settings, searches=searches)
        for run in runs:
            compose(run)
    except ConfigError:
        return None  # Hydra composes them next, and its error names the closest setting
    local = not any(word.startswith(_ELSEWHERE) for word in settings)
    checks = RunChecks(compose)
    checks.check((Candidate(overrides=run) for run in runs), local=local)
    kept, notes = checks.without_equal_seeds(runs)
    for note in notes:
        print_line(note)
    return kept if len(kept) < len(runs) and not searches else None


def sweep() -> None:
    """Run a sweep and list its runs."""
    from ace_bench.runners.host import EXIT_INTERRUPTED

    if launcher := next((word for word in sys.argv if word.startswith("hydra/launcher=")), None):
        raise ConfigError(
            f"{launcher} is not a launcher of ace-bench: leave it out, or take launcher=threads, ray or slurm"
        )
    kept = _check_runs(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with runs_listed(), scratch_folder("plan") as scratch:
            if kept is not None:
                (scratch / "runs.json").write_bytes(msgspec.json.encode(kept))
                plan = quote(str(scratch / "runs.json"))
                sys.argv[1:1] = ["hydra/sweeper=planned", f"hydra.sweeper.plan={plan}"]
            experiment()
    except RuntimeError as error:
        if _SLURM not in sys.argv:
            raise
        reason = (str(error).strip() or "it gives no reason").splitlines()[-1]
        where = "start the sweep on a machine of the cluster, or take launcher=threads"
        raise ConfigError(f"{_SLURM} cannot submit jobs ({reason}); {where}") from error
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        sys.exit(EXIT_INTERRUPTED)
