"""The part of a result that a user chooses: columns by their task, rows by their method, or both by their own names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from msgspec.structs import replace as changed

from ace_bench.core.errors import DataError
from ace_bench.core.resources import config_folders, options
from ace_bench.report.experiments import Experiments
from ace_bench.report.paper.rows import Column, Row
from ace_bench.report.paper.tables import Experiment

TASKS, METHODS = "tasks", "methods"
AXES = (METHODS, TASKS, "scaffolds", "feedback", "passes")
"""What can be chosen. The last three are axes of experiments that list methods."""

Chosen = Mapping[str, Sequence[str]]
"""The chosen names by axis, such as ``{"tasks": ["finer"]}``. An axis without names is whole."""


def read_choice(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what the words of a command choose, such as ``tasks=finer,formula``."""
    chosen = {}
    for word in words:
        axis, _, names = word.partition("=")
        if axis in AXES:
            chosen[axis] = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    return chosen


def choice_words(chosen: Chosen) -> list[str]:
    """Return a choice as a user types it."""
    return [f"{axis}={','.join(names)}" for axis, names in chosen.items()]


def narrowed(experiments: Experiments, names: Sequence[str], chosen: Chosen) -> tuple[Experiments, tuple[str, ...]]:
    """Narrow the experiments called ``names`` to what is chosen. Returns all, and the names of those with a part left.

    The row that others are compared with stays, unless it adapts, which may cost more than all that was chosen.
    Raises ``DataError`` for an unknown name, for an axis without one, or if nothing is left.
    """
    if not chosen:
        return experiments, tuple(names)
    if empty := next((axis for axis in chosen if not chosen[axis]), None):  # a shell's variable that is not set
        raise DataError(f"{empty}= names nothing; write {empty}=NAME,NAME, or leave it out for all")
    asked = {name: experiments.complete(name) for name in names}
    listing = any(experiment.combined for experiment in asked.values())
    if other := next((axis for axis in chosen if axis not in (TASKS, METHODS) and not listing), None):
        raise DataError(
            f"{other}= chooses from an experiment that lists methods ({', '.join(experiments.combined)}), and none is "
            "asked for; leave it out"
        )
    _check_known(experiments, asked, chosen)
    parts = with_parts(experiments, names, chosen)
    left = tuple(name for name in names if parts.by_name[name].rows or parts.by_name[name].bars)
    if not left:
        raise DataError(f"no run of {', '.join(names)} has {' '.join(choice_words(chosen))}")
    return parts, left


def with_parts(experiments: Experiments, names: Iterable[str], chosen: Chosen) -> Experiments:
    """Narrow the experiments called ``names``, whether they have what is chosen or not."""
    whole = {name: experiments.complete(name) for name in names}
    parts = {
        name: experiment.narrowed(chosen) if experiment.combined else _part(experiments, experiment, chosen)
        for name, experiment in whole.items()
    }
    by_name = {**experiments.by_name, **parts}
    return replace(experiments, by_name=by_name, whole={**experiments.whole, **whole}, chosen=chosen)


def _check_known(experiments: Experiments, asked: Mapping[str, Experiment], chosen: Chosen) -> None:
    """Raise ``DataError`` for a task or method that none of the experiments asked for has."""
    known: dict[str, dict[str, None]] = {TASKS: {}, METHODS: {}}
    for experiment in asked.values():
        for task, method in _kinds(experiments, experiment):
            known[TASKS][task] = known[METHODS][method] = None
        if experiment.combined:
            known[METHODS] |= dict.fromkeys(options("method", config_folders()))
    if not known[TASKS]:
        choice = " ".join(choice_words(chosen))
        raise DataError(f"{choice} chooses columns and rows of runs, and {', '.join(asked)} has none; leave it out")
    for axis, kind, own_names in ((TASKS, "task", "columns"), (METHODS, "method", "rows")):
        own = {name for experiment in asked.values() for name in getattr(experiment, own_names)}
        if unknown := next((name for name in chosen.get(axis, ()) if name not in known[axis].keys() | own), None):
            raise DataError(f"{axis}={unknown}: there is no such {kind} here; there are {', '.join(known[axis])}")


def _kinds(experiments: Experiments, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield task and method of each cell, and of each bar of a figure."""
    cells = [(experiment.id, *cell) for cell in experiments.cells(experiment.id)]
    for bars in experiment.bars.values():
        cells += chain.from_iterable(_cells_of(experiments, ref) for ref in bars.values())
    for cell in cells:
        task, method, _ = experiments.run(*cell).kind
        yield task, method


def _cells_of(experiments: Experiments, ref: str) -> Iterator[tuple[str, str, str]]:
    """Yield the measured cells behind a bar, none for a system that is not run here."""
    table, row, column = ref.split("/")
    experiment = experiments.complete(table)
    if row not in experiment.not_reproducible:
        yield from ((table, row, part) for part in experiment.columns[column].mean_of or (column,))


def _part(experiments: Experiments, experiment: Experiment, chosen: Chosen) -> Experiment:
    """Narrow a result whose rows are written down, or a figure that draws cells of such results."""

    def has(cell: tuple[str, str, str]) -> bool:
        _, row, column = cell
        task, method, _ = experiments.run(*cell).kind
        wanted = ((chosen.get(TASKS), {task, column}), (chosen.get(METHODS), {method, row}))
        return all(not names or own & {*names} for names, own in wanted)

    name, against = experiment.id, experiment.rows.get(experiment.against)
    free = {experiment.against} if against and not against.adapts else set[str]()
    chosen_cells = [cell for cell in experiments.cells(name) if has((name, *cell))]
    columns = {column for _, column in chosen_cells}
    columns |= {column for column, spec in experiment.columns.items() if _is_whole(spec, columns)}
    rows = {row for row, _ in chosen_cells} | (free if chosen_cells else set())
    bars = {}
    for group, refs in experiment.bars.items():
        cells = {label: [*_cells_of(experiments, ref)] for label, ref in refs.items()}
        kept = {label for label, parts in cells.items() if parts and all(map(has, parts))}
        if kept:
            published = {label for label, parts in cells.items() if not parts and not chosen.get(METHODS)}
            bars[group] = {label: ref for label, ref in refs.items() if label in kept | published}
    places = [place for place, column in enumerate(experiment.printed) if column in columns]
    return changed(
        experiment,
        columns={column: spec for column, spec in experiment.columns.items() if column in columns},
        rows={row: _line(line, places) for row, line in experiment.rows.items() if row in rows},
        against=experiment.against if experiment.against in rows else "",
        not_reproducible={} if chosen.get(METHODS) else experiment.not_reproducible,
        bars=bars,
        notes=f"{experiment.notes} A part of it: {' '.join(choice_words(chosen))}.".strip(),
    )


def _is_whole(column: Column, kept: Collection[str]) -> bool:
    """Whether a column that is computed from others can be: all parts of its mean are kept, or any for one per another.

    What is divided are the sums in another table.
    """
    return {*column.mean_of} <= {*kept} if column.mean_of else bool(column.per and kept)


def _line(row: Row, places: Sequence[int]) -> Row:
    """Keep of a row the paper's numbers in some columns."""
    values, changes = (tuple(numbers[place] for place in places if numbers) for numbers in (row.values, row.changes))
    return changed(row, values=values, changes=changes)
