"""The table that a sweep ends with: a row for each run, the settings in which they differ, score and cost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ace_bench.core.console import Console
from ace_bench.core.scratch import scratch_folder

if TYPE_CHECKING:
    from ace_bench.report.records import RunSummary

_NOTES = "ACE_BENCH_SWEEP"
"""The variable that names the file in which the processes of a sweep note their run folders."""
_FAILED = "failed"
"""Starts the line of a run that failed; its overrides follow if it left no folder. Other lines are folders."""
_WIDEST = 5
"""Number of settings that have columns of their own; more are in one column, as the name of the run."""


@contextmanager
def runs_listed() -> Iterator[None]:
    """List the runs that end inside the block, also in other processes on this machine.

    Exits with status 1 at the end of the block if one of them has failed.
    """
    with scratch_folder("sweep") as scratch, (scratch / "runs").open("w+") as notes:
        os.environ[_NOTES] = notes.name
        try:
            yield
        finally:
            del os.environ[_NOTES]
            lines = dict.fromkeys(notes.read().splitlines())
            failures = [line for line in lines if line.startswith(_FAILED)]
            _show([Path(line) for line in lines if line not in failures], failures, Console())
    if failures:
        sys.exit(1)


def note_run(folder: Path) -> None:
    """Note the folder of a run of a sweep; does nothing outside a sweep, or on another machine than the sweep's."""
    _note(str(folder.resolve()))


def note_failure(overrides: Sequence[str]) -> bool:
    """Note that a run of a sweep has failed and return whether that was possible, as in ``note_run``.

    ``overrides`` name a run without a folder, which has no other row.
    """
    return _note(" ".join([_FAILED, *(word for word in overrides if word not in sys.argv)]))


def _note(line: str) -> bool:
    notes = os.environ.get(_NOTES)
    if not notes or not Path(notes).exists():
        return False
    with Path(notes).open("a") as file:  # one write of one line: processes do not mix theirs
        file.write(f"{line}\n")
    return True


def _show(folders: Sequence[Path], failures: Sequence[str], console: Console) -> None:
    from ace_bench.core.errors import StoreError
    from ace_bench.report.records import read_run

    runs = []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except StoreError as error:
            console.print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)
    failed = [words for line in failures if (words := line.removeprefix(_FAILED).strip())]
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

    found, samples = differences(runs), sample_keys(runs)
    marks = {marks_of(simulated=run.simulated, source=run.source) for run in runs}
    mixed = len(marks) > 1
    head = f"{len(runs)} run{'s' * (len(runs) > 1)}: {found.common}"
    title = " ".join(filter(None, (head, "" if mixed else marks.pop())))
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    paths = list(found.names) if len(found.names) <= _WIDEST else []
    for name in [found.names[path] for path in paths] or ["run"]:
        add_column(table, name.replace("_", " "))
    table.add_column("score [95%]", justify="right", no_wrap=True)
    table.add_column("cost", justify="right")
    groups: dict[tuple[str, bool], list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault((samples[run.folder], run.simulated), []).append(place)
    for some in groups.values():
        for place in some:
            own = [found.text(place, path) for path in paths] or [found.labels[place]]
            table.add_row(*map(Text, own), Text(_score(runs[place], mark=mixed)), _cost(runs[place]))
        table.add_section()
    for words in failed:
        table.add_row(Text(words), *[""] * max(0, len(paths) - 1), _FAILED, "")
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
