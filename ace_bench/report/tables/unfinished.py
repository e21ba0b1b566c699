"""What the unfinished runs of a table have done so far, and the commands that continue them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.program import command_line
from ace_bench.report.experiments import Experiments
from ace_bench.report.narrowing import read_choice, with_parts
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RUNNING, RunSummary
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import Grid, number, signed_bounds
from ace_bench.report.tables.table import MISSING, Continuing, Table
from ace_bench.report.unfinished import SoFar, beside_base, so_far
from ace_bench.store.processes import parse_command

_HEADER = ("column", "seed", "state", "learnt from", "first attempts", "score so far", "base on these", "difference")
_SEVERAL, _SEED, _RESULTS = ("table=", "figure=", "experiment="), "seed=", "results="
_LEVELS = 3
"""Folders between the results folder and the folder of a run."""


def unfinished_grid(table: Table) -> Grid:
    """Lay out each unfinished run: samples learnt from, and first attempts against its base on the same samples."""
    rows = [
        (*table.rows[row].texts, table.columns[column].title, *_cells(run, table.base_of(row, column)))
        for row, line in table.cells.items()
        for column, cell in line.items()
        for run in cell.unfinished
    ]
    title = "Not finished: what these runs have done so far, which is in no number above"
    return Grid(title=title, header=(*table.names, *_HEADER), rows=tuple(rows))


def _cells(run: RunSummary, base: Measured | None) -> Iterator[str]:
    yield str(run.seed)
    yield f"{run.state}: {run.reason}" if run.reason else run.state
    try:
        done = so_far(run)
        beside = beside_base(run, done, (*base.runs, *base.unfinished) if base else ())
    except StoreError as error:
        yield from (str(error), *[MISSING] * 4)
        return
    yield learnt_text(done)
    yield f"{len(done.points)} of {done.samples or 'unknown'} in {done.split}" if done.points else MISSING
    yield MISSING if done.score is None else number(done.score, "percent")
    if beside is None:
        yield from (MISSING, MISSING)
        return
    tested = beside.comparison
    yield f"{number(beside.base, 'percent')} (n = {tested.n})"
    yield f"{tested.difference:+.1f}{signed_bounds(tested.interval)}"


def learnt_text(done: SoFar) -> str:
    """Say how many samples a run has learnt from."""
    if done.planned == 0:
        return MISSING
    if not done.steps:
        return "before step 1"
    return f"{done.learnt} of {done.planned or 'unknown'}" if done.learnt else f"step {done.steps}"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A run of a table that has not finished: its seed, its folder if it was begun, and a command for it alone."""

    plan: PlannedRun | None
    seed: int
    run: RunSummary | None
    command: str = ""


def continuing(
    name: str,
    planned: Sequence[Planned],
    made: Iterable[RunSummary] = (),
    experiments: Experiments | None = None,
    of_all: str = "",
) -> Continuing | None:
    """Return what makes the unfinished and missing runs of one of the ``experiments``, ``None`` without any.

    A command that asked for several of them at once (``reproduce``, or a sweep) stands for all that it asked for. It is
    read from the runs it ``made``. Of the others each begun one has the command that began it, with all settings.
    Several that nobody asked for have one together, ``of_all``, which makes the whole experiment.
    """
    sweeps: dict[str, Collection[tuple[PlannedRun | None, str]]] = {}
    for run in made:
        if run.sweep and experiments is not None:
            command = _with_results(run.sweep, run.folder)
            if command not in sweeps:
                sweeps[command] = _asked_for(parse_command(run.sweep), name, experiments)
    commands: dict[str, None] = {}
    for one in planned:
        if one.run is not None and one.run.sweep:
            commands.setdefault(_with_results(one.run.sweep, one.run.folder))
    unasked = list[Planned]()
    for one in planned:
        if one.run is not None and one.run.sweep:
            continue
        asked = next((command for command, runs in sweeps.items() if (one.plan, str(one.seed)) in runs), None)
        if asked is None and one.run is None:
            unasked.append(one)
        elif command := asked or _command_of(one):
            commands.setdefault(command)
    together = [of_all] if of_all and len(unasked) > 1 else [one.command for one in unasked]
    commands |= dict.fromkeys(filter(None, together))
    if not commands:
        return None
    begun = [one.run for one in planned if one.run is not None]
    return Continuing(
        missing=len(planned) - len(begun), begun=len(begun), commands=tuple(commands), older=_older(begun)
    )


def _command_of(one: Planned) -> str:
    """Return the command of one run: the one that began it, or the planned one."""
    return one.command if one.run is None else _recorded_command(one.run) or one.command


def command_continuing(run: RunSummary) -> str:
    """Return the command that continues a stopped run, "" for other runs and those of older versions.

    Raises ``StoreError``.
    """
    return "" if run.finished or run.older or run.state == RUNNING else _recorded_command(run)


def _recorded_command(run: RunSummary) -> str:
    commands = (process.command for process in reversed(run.processes))
    began = next((command for command in commands if command and parse_command(command)), "")
    return _with_results(began, run.folder) if began else ""


def _asked_for(words: Sequence[str], name: str, experiments: Experiments) -> Collection[tuple[PlannedRun | None, str]]:
    """Return the runs of an experiment, by plan and seed, that the words of a recorded command ask for."""
    values = {key: word.partition("=")[2].split(",") for word in words for key in [f"{word.partition('=')[0]}="]}
    names = [value for key in _SEVERAL for value in values.get(key, ())]
    if not {name, name.rstrip("ab"), name.removeprefix("figure_"), "all"} & {*names}:
        return ()
    try:
        part = with_parts(experiments, [name], read_choice(words))
    except DataError:  # this version has no such scaffold, feedback or passes
        return ()
    return {(plan, seed) for plan in part.runs(name) for seed in values.get(_SEED, ["0"])}


def _with_results(command: str, folder: Path) -> str:
    """Return a recorded command for runs whose results folder lies where ``folder`` is now.

    A folder that was copied out of its results folder may have too few parents. Its command stays as it is.
    """
    parents = folder.parents if len(folder.parents) > _LEVELS else folder.resolve().parents
    words = parse_command(command)
    typed = next((word.removeprefix(_RESULTS) for word in words if word.startswith(_RESULTS)), "results")
    results = parents[_LEVELS] if len(parents) > _LEVELS else Path(typed)
    if Path(typed).resolve() != results.resolve():
        words = [*(word for word in words if not word.startswith(_RESULTS)), f"{_RESULTS}{results}"]
    return f"{command_line(words[1])} {shlex.join(words[2:])}"


def _older(begun: Iterable[RunSummary]) -> tuple[str, ...]:
    """Return the other versions of this program that worked last on some runs."""
    versions = {run.processes[-1].packages.get("ace-bench", "") for run in begun if run.processes}
    return tuple(sorted(versions - {"", version("ace-bench")}))
