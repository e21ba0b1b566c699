"""What runs measured for a cell of a table: the mean over seeds, how far it may be off, and against the base row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal, TypeVar

from ace_bench.core.errors import DataError, StoreError
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.paper.tables import Cell
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Comparison, Interval, Points, compare, score_interval

_T = TypeVar("_T")

Change = Literal["points", "percent"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a cell stands, how it is written, and what the paper has there."""

    row: str
    column: str
    unit: str
    paper: Cell | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A cell of ours over the seeds in ``runs``; ``value`` is ``None`` where it is unknown or there are no runs.

    ``interval`` are bootstrap bounds of a score, or the least and the most of several seeds of anything else.
    ``points`` are the scores behind it, by run, where it is a mean of scores.
    ``change`` is against the base row, in percentage points or percent. ``state`` says why there is no run.
    ``departures`` are settings of its runs that are not the paper's.
    """

    place: Place
    runs: tuple[RunSummary, ...] = ()
    planned: PlannedRun | None = None
    metric: str = ""
    state: str = ""
    value: float | None = None
    interval: Interval | None = None
    change: float | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    points: tuple[Points, ...] = field(default=(), repr=False)

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in the unit of the cell."""
        paper = self.place.paper
        return None if paper is None or paper.value is None or self.value is None else self.value - paper.value

    @property
    def samples(self) -> int | None:
        """Samples that each run tested; of a score, those (or the scenarios) whose mean it is."""
        if self.points:
            return len(self.points[0])
        return int(self.runs[0].value("n") or 0) if self.runs else None

    @property
    def faults(self) -> int | None:
        """Failed attempts behind a score, over all seeds; of costs, all that failed in the runs."""
        if not self.runs:
            return None
        if self.place.unit == "percent":
            return sum(int(run.value("faults") or 0) for run in self.runs)
        return sum(sum(faults.values()) for run in self.runs for faults in run.metrics["faults"].values())


def measure(place: Place, planned: PlannedRun | None, metric: str, runs: Sequence[RunSummary]) -> Measured:
    """Measure a cell from the runs of its plan; of those that have not finished, say how far they are."""
    done = tuple(run for run in runs if run.finished)
    if not done:
        state = ", ".join(sorted({run.state for run in runs})) or "missing"
        return Measured(place=place, planned=planned, metric=metric, state=state)
    notes: list[str] = []
    value = _told(notes, lambda: mean_of([run.value(metric) for run in done]))
    interval = None
    scores = _points(done, metric, notes) if place.unit == "percent" else ()
    if scores:
        interval = _told(notes, lambda: score_interval(scores))
    elif value is not None and len(done) > 1:
        values = [run.value(metric) or 0.0 for run in done]
        interval = Interval(low=min(values), high=max(values))
    return Measured(
        place=place,
        runs=done,
        planned=planned,
        metric=metric,
        value=value,
        interval=interval,
        notes=tuple(notes),
        points=scores,
    )


class Measures:
    """Measures each cell and makes each comparison once, however many tables show it."""

    def __init__(self, find: Callable[[PlannedRun], Sequence[RunSummary]]) -> None:
        """``find`` returns the runs of a plan, finished or not."""
        self._find = find
        self._cells: dict[tuple[PlannedRun, str], Measured] = {}
        self._compared: dict[tuple[PlannedRun | None, PlannedRun | None, str], tuple[Comparison | None, str]] = {}

    def cell(self, place: Place, planned: PlannedRun, metric: str) -> Measured:
        """Measure a metric of a planned run for a place in a table."""
        key = (planned, metric)
        if key not in self._cells:
            self._cells[key] = measure(place, planned, metric, self._find(planned))
        return replace(self._cells[key], place=place)

    def against(self, ours: Measured, base: Measured, kind: Change) -> Measured:
        """Set a cell against the base row's, with a paired test where both rest on scores."""
        key = (ours.planned, base.planned, ours.metric)
        if key not in self._compared:
            notes: list[str] = []
            tested = ours.points and base.points
            found = _told(notes, lambda: compare(ours.points, base.points)) if tested else None
            self._compared[key] = (found, "; ".join(notes))
        comparison, note = self._compared[key]
        notes_of_both = tuple(dict.fromkeys(filter(None, (*ours.notes, *base.notes, note))))
        change = _change(ours.value, base.value, kind)
        return replace(ours, change=change, comparison=comparison, notes=notes_of_both)


def derive(place: Place, parts: Sequence[Measured], formula: Callable[[list[float]], float | None]) -> Measured:
    """Compute a cell from others, such as an average; it has no interval of its own."""
    known = [part.value for part in parts if part.value is not None]
    state = next((part.state for part in parts if part.state), "")
    value = formula(known) if known and len(known) == len(parts) else None
    departures = tuple(dict.fromkeys(departure for part in parts for departure in part.departures))
    return Measured(place=place, state=state, value=value, departures=departures)


def setting_warning(cells: Iterable[Measured]) -> str:
    """Say in a title that cells were not measured in the paper's setting; "" where all were."""
    depart = [bool(cell.departures) for cell in cells if cell.runs]
    if not any(depart):
        return ""
    return " [not the paper's setting]" if all(depart) else " [in part not the paper's setting]"


def reach(cell: Measured) -> tuple[float, float]:
    """How far below and above its value a cell's interval reaches; 0 where there is none."""
    if cell.value is None or cell.interval is None:
        return (0.0, 0.0)
    return (max(0.0, cell.value - cell.interval.low), max(0.0, cell.interval.high - cell.value))


def _change(value: float | None, base: float | None, kind: Change) -> float | None:
    if value is None or base is None or (kind == "percent" and base == 0):
        return None
    return value - base if kind == "points" else 100 * (value / base - 1)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean over repetitions; with an unknown part it is unknown, and there is none over nothing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _points(runs: Sequence[RunSummary], metric: str, notes: list[str]) -> tuple[Points, ...]:
    """Scores by run; none at all where a run has none."""
    found = _told(notes, lambda: [run.points(metric) for run in runs])
    known = tuple(points for points in found or [] if points is not None)
    return known if len(known) == len(runs) else ()


def _told(notes: list[str], ask: Callable[[], _T]) -> _T | None:
    """Ask; an answer that cannot be given becomes a note, so that one damaged run spoils one cell."""
    try:
        return ask()
    except (StoreError, DataError) as error:
        notes.append(str(error))
        return None
