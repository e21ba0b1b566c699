"""The table that a sweep ends with: a row for each run, the settings in which they differ, score and cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ace_bench.core.console import Console

if TYPE_CHECKING:
    from ace_bench.report.records import RunSummary

_FAILED = "failed"
_WIDEST = 5
"""Number of settings that have columns of their own; more are in one column, as the name of the run."""


@dataclass(kw_only=True)
class _Notes:
    """The folders of the runs of a sweep, and the settings of each failed run, which are empty if it has a folder."""

    folders: dict[Path, None] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


_NOTES: ContextVar[_Notes | None] = ContextVar("the notes of the sweep that is under way", default=None)
"""Hydra stands between a sweep and its launcher, and hands nothing through."""


@contextmanager
def runs_listed() -> Iterator[None]:
    """List the runs that are noted inside the block; exits with status 1 at its end if one of them has failed."""
    notes = _Notes()
    before = _NOTES.set(notes)
    try:
        yield
    finally:
        _NOTES.reset(before)
        _show([*notes.folders], [*filter(None, notes.failures)], Console())
    if notes.failures:
        sys.exit(1)


def note_run(folder: Path) -> None:
    """Note the folder of a run of a sweep."""
    if notes := _NOTES.get():
        notes.folders[folder.resolve()] = None


def note_failure(overrides: Sequence[str]) -> None:
    """Note that a run of a sweep has failed; ``overrides`` name a run without a folder, which has no other row."""
    if notes := _NOTES.get():
        notes.failures.append(" ".join(word for word in overrides if word not in sys.argv))


def _show(folders: Sequence[Path], failed: Sequence[str], console: Console) -> None:
    from ace_bench.core.errors import StoreError
    from ace_bench.report.records import read_run

    runs = []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except StoreError as error:
            console.print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)
    if runs and len(runs) + len(failed) > 1:
        console.print(sweep_table(runs, failed))


def sweep_table(runs: Sequence[RunSummary], failed: Sequence[str]) -> Table:
    """Return the table of some runs; lines separate runs whose scores cannot be compared.

    ``failed`` are the settings of runs without a folder.
    """
    from ace_bench.cli.arguments import add_column
    from ace_bench.report.choosing import sample_keys
    from ace_bench.report.differences import differences
    from ace_bench.report.records import marks_of

    differ, samples = differences(runs), sample_keys(runs)
    marks = {marks_of(simulated=run.simulated, source=run.source) for run in runs}
    mixed = len(marks) > 1
    head = f"{len(runs)} run{'s' * (len(runs) > 1)}: {differ.common}"
    title = " ".join(filter(None, (head, "" if mixed else marks.pop())))
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    paths = list(differ.names) if len(differ.names) <= _WIDEST else []
    for name in [differ.names[path] for path in paths] or ["run"]:
        add_column(table, name.replace("_", " "))
    table.add_column("score [95%]", justify="right", no_wrap=True)
    table.add_column("cost", justify="right")
    groups: dict[tuple[str, bool], list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault((samples[run.folder], run.simulated), []).append(index)
    for group in groups.values():
        for index in group:
            values = [differ.text(index, path) for path in paths] or [differ.labels[index]]
            table.add_row(*map(Text, values), Text(_score(runs[index], mark=mixed)), _cost(runs[index]))
        table.add_section()
    for overrides in failed:
        table.add_row(Text(overrides), *[""] * max(0, len(paths) - 1), _FAILED, "")
    if len(groups) > 1:
        table.caption = "Scores on different sides of a line cannot be compared: other samples, or simulated."
    return table


def _score(run: RunSummary, *, mark: bool) -> str:
    if not run.finished:
        return run.state
    headline = run.metrics["headline"]
    bounds = headline["ci95"]
    interval = f" [{bounds[0]:.1f}, {bounds[1]:.1f}]" if bounds else ""
    return f"{headline['after']:.1f}{interval}" + " (simulated)" * (mark and run.simulated)


def _cost(run: RunSummary) -> str:
    """Return the dollars of a run, or its tokens if it cost none or the price is unknown."""
    from ace_bench.runners.summary import compact

    dollars = run.value("usd.total")
    if dollars:
        return f"${dollars:,.2f}"
    tokens = [run.value(f"tokens.total.{side}") for side in ("in", "out")]
    return "n/a" if None in tokens else f"{compact(int(sum(count or 0 for count in tokens)))} tokens"
