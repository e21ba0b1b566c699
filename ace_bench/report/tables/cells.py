"""What runs measured for a cell of a table: the mean over seeds, its interval, and the change against the base row."""

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
    """Row and column of a cell, its unit, and the paper's number there."""

    row: str
    column: str
    unit: str
    paper: Cell | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One cell over the seeds in ``runs``; ``value`` is ``None`` where it is unknown or there are no runs.

    ``interval`` holds bootstrap bounds of a score; of anything else, the smallest and largest value over seeds.
    ``points`` are the scores of each run, where the value is a mean of scores.
    ``change`` is against the base row, in percentage points or percent. ``state`` says why there is no finished run.
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
        """Samples that each run tested; of a score, the samples or scenarios it is the mean of."""
        if self.points:
            return len(self.points[0])
        return int(self.runs[0].value("n") or 0) if self.runs else None

    @property
    def faults(self) -> int | None:
        """Failed rollouts behind a score, over all seeds; of costs, all failures in the runs."""
        if not self.runs:
            return None
        if self.place.unit == "percent":
            return sum(int(run.value("faults") or 0) for run in self.runs)
        return sum(sum(faults.values()) for run in self.runs for faults in run.metrics["faults"].values())


def measure(place: Place, planned: PlannedRun | None, metric: str, runs: Sequence[RunSummary]) -> Measured:
    """Measure a cell from the runs of its plan; without a finished run, ``state`` says how far they are."""
    done = tuple(run for run in runs if run.finished)
    if not done:
        state = ", ".join(sorted({run.state for run in runs})) or "missing"
        return Measured(place=place, planned=planned, metric=metric, state=state)
    attempt = _Attempts()
    value = attempt(lambda: mean_of([run.value(metric) for run in done]))
    interval = None
    scores = (attempt(lambda: _points(done, metric)) or ()) if place.unit == "percent" else ()
    if scores:
        interval = attempt(lambda: score_interval(scores))
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
        notes=tuple(attempt.errors),
        points=scores,
    )


class Measures:
    """Caches cells and comparisons that several tables show."""

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
            attempt = _Attempts()
            tested = ours.points and base.points
            found = attempt(lambda: compare(ours.points, base.points)) if tested else None
            self._compared[key] = (found, "; ".join(attempt.errors))
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
    """Return the part of a title that marks cells not measured in the paper's setting; "" where all were."""
    depart = [bool(cell.departures) for cell in cells if cell.runs]
    if not any(depart):
        return ""
    return " [not the paper's setting]" if all(depart) else " [in part not the paper's setting]"


def reach(cell: Measured) -> tuple[float, float]:
    """Return how far a cell's interval reaches below and above its value; 0 without an interval."""
    if cell.value is None or cell.interval is None:
        return (0.0, 0.0)
    return (max(0.0, cell.value - cell.interval.low), max(0.0, cell.interval.high - cell.value))


def _change(value: float | None, base: float | None, kind: Change) -> float | None:
    if value is None or base is None or (kind == "percent" and base == 0):
        return None
    return value - base if kind == "points" else 100 * (value / base - 1)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, ``None`` where a value is unknown or there are no values."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _points(runs: Sequence[RunSummary], metric: str) -> tuple[Points, ...]:
    """Return the scores by run; none at all where a run has none."""
    known = tuple(points for run in runs if (points := run.points(metric)) is not None)
    return known if len(known) == len(runs) else ()


class _Attempts:
    """Makes calculations and keeps the errors of those that fail, so that a damaged run spoils its own cells only."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def __call__(self, calculate: Callable[[], _T]) -> _T | None:
        """Return the result, ``None`` where a run folder cannot give it."""
        try:
            return calculate()
        except (StoreError, DataError) as error:
            self.errors.append(str(error))
            return None
