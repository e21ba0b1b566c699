"""Shared parts of the benchmark cases: their settings, how they start runs, their tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.resources import configs_folder
from ace_bench.report import escaping

_SHOWN_LINES = 6


class RunFailedError(AceBenchError):
    """A run of a benchmark failed; the message holds the end of its output."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure with the project's target."""

    name: str
    measured: str
    aim: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts; a line follows the rows in ``rules``, ``notes`` explain the table."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    rules: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def grid_of(title: str, figures: Iterable[Figure]) -> Grid:
    """Lay figures out as a table."""
    rows = tuple((figure.name, figure.measured, figure.aim) for figure in figures)
    return Grid(title=title, headings=("figure", "measured", "aim"), rows=rows)


def markdown(grids: Sequence[Grid]) -> str:
    """Write tables in Markdown, one after the other."""
    parts: list[str] = []
    for grid in grids:
        parts.append(f"## {escaping.markdown(grid.title)}")
        parts.append(escaping.markdown_table(grid.headings, grid.rows))
        parts += map(escaping.markdown, grid.notes)
    return "\n\n".join(parts) + "\n"


def _ignore(said: str) -> None:
    del said


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a case runs: a folder for its runs and, optionally, real data.

    ``sizes`` are samples by split, ``say`` reports the progress of a long case, ``prices`` names the backbone
    configuration whose prices apply to the counted tokens, ``only`` are the methods to run. ``slots`` are numbers of
    calls in flight to plan for, ``call_seconds`` replaces the recorded length of every call, ``make`` asks
    ``reproduce`` for the runs to measure, ``bullets`` are the sizes of playbooks.
    ``runs`` are those of the folder that tables and viewer read.
    """

    scratch: Path
    data: Path | None
    sizes: Mapping[str, int] = field(default_factory=dict)
    say: Callable[[str], None] = _ignore
    prices: str = "deepseek_v3_1"
    only: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    make: tuple[str, ...] = ()
    bullets: tuple[int, ...] = ()
    call_seconds: float | None = None
    runs: int = 1000

    def source(self, task: str) -> str:
        """Return the override that names a task's data."""
        return f"task.data_dir={(self.data / task).resolve()}" if self.data else "task.source=sample"

    def command(self, *overrides: str) -> list[str]:
        """Return the command line of a run into the folder for runs."""
        return [sys.executable, "-m", "ace_bench", "run", f"results={self.scratch}", *overrides]

    def run(self, *overrides: str) -> Path:
        """Run or continue to the end and return the run folder; raises ``RunFailedError``."""
        done = subprocess.run(self.command(*overrides), capture_output=True, text=True, check=False, timeout=3600)
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN_LINES:])
            raise RunFailedError(f"run {' '.join(overrides)} ended with status {done.returncode}:\n{last}")
        return Path(done.stdout.splitlines()[-1])


def price_card(backbone: str) -> PriceCard:
    """Return the list prices of a backbone's configuration."""
    path = configs_folder() / "backbone" / f"{backbone}.yaml"
    prices = OmegaConf.select(OmegaConf.load(path), "prices") if path.is_file() else None
    if prices is None:
        raise ConfigError(f"--prices {backbone}: {path} is no file with prices")
    return PriceCard(**prices)


def metrics_of(folder: Path) -> dict[str, Any]:
    """Return a finished run's metrics."""
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics


def in_process(setting: Setting, overrides: list[str], adjust: Callable[[Any], Any]) -> Path:
    """Run in this process with an adjusted plan: for parts no configuration can name, such as a scripted model."""
    from unittest import mock

    from ace_bench.runners import run as experiment
    from ace_bench.runners.build import assemble
    from ace_bench.runners.host import reporting
    from ace_bench.runners.identifying import IdentifiedRun, compose_run

    plans: list[Any] = []

    def adjusted(found: IdentifiedRun) -> Any:
        plans.append(adjust(assemble(found)))
        return plans[-1]

    with mock.patch.object(experiment, "build_run", adjusted), reporting() as report:
        experiment.run(compose_run([f"results={setting.scratch}", *overrides]), report.host)
    if report.status:
        raise RuntimeError(f"the run ended with status {report.status}")
    folder: Path = plans[0].folder
    return folder
