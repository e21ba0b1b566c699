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
    from ace_bench.report.choosing import with_settings
    from ace_bench.report.records import find_runs

    folders = [Path(word) for word in arguments if "=" not in word or Path(word).is_dir()] or [Path(_RESULTS)]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise ConfigError(f"{', '.join(missing)} is not a folder; name folders of runs, or settings as KEY=VALUE")
    found: dict[Path, RunSummary] = {}
    for folder in folders:
        index = find_runs(folder)
        for damaged in index.damaged:
            console.print(f"left out: {damaged.reason}", style="yellow", markup=False, highlight=False, soft_wrap=True)
        found |= {run.folder.resolve(): run for run in index.runs}
    if not found:
        raise ConfigError(f"there are no runs in {', '.join(map(str, folders))}; make some, or name their folder")
    return with_settings(found.values(), (word for word in arguments if "=" in word and not Path(word).is_dir()))
