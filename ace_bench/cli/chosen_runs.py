"""The runs that a command line names by folders and settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ace_bench.core.errors import ConfigError

if TYPE_CHECKING:
    from ace_bench.report.records import RunSummary

_RESULTS = "results"


def chosen_runs(arguments: Sequence[str], console: Console) -> list[RunSummary]:
    """Return the runs in the folders that have the settings (``KEY=VALUE[,VALUE]``); damaged ones are reported.

    Raises ``ConfigError`` if there are none.
    """
    from ace_bench.report.differences import run_settings, value_text
    from ace_bench.report.records import find_runs
    from ace_bench.report.tables.pivot_names import setting_path

    folders = [Path(word) for word in arguments if "=" not in word or Path(word).is_dir()] or [Path(_RESULTS)]
    found: dict[Path, RunSummary] = {}
    for folder in folders:
        index = find_runs(folder)
        for damaged in index.damaged:
            console.print(f"left out: {damaged.reason}", style="yellow", markup=False, highlight=False, soft_wrap=True)
        found |= {run.folder.resolve(): run for run in index.runs}
    runs = [(run, run_settings(run)) for run in found.values()]
    if not runs:
        raise ConfigError(f"there are no runs in {', '.join(map(str, folders))}; make some, or name their folder")
    for word in (word for word in arguments if "=" in word and not Path(word).is_dir()):
        key, _, values = word.partition("=")
        path = setting_path(key, [settings for _, settings in runs])
        known = list(dict.fromkeys(value_text(settings[path]) for _, settings in runs if path in settings))
        runs = [(run, own) for run, own in runs if path in own and value_text(own[path]) in words(values, word)]
        if not runs:
            raise ConfigError(f"no run has {word}; there are {key}={','.join(known)}")
    return [run for run, _ in runs]


def words(text: str, option: str) -> tuple[str, ...]:
    """Split the value of an option, a list separated by commas; raises ``ConfigError`` if it is empty."""
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise ConfigError(f"{option} names nothing; give at least one name, or leave the option out")
    return found
