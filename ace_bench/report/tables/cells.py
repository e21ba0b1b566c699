"""Cells of a table: the mean over seeds, its interval and spread, and the change against the base row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from statistics import fmean
from typing import Literal

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.leakage import Leakage
from ace_bench.core.model_names import describe_other_models
from ace_bench.report.paper.tables import Cell
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import (
    Comparison,
    Interval,
    Points,
    Seeds,
    compare,
    reasons_score_wide,
    score_interval,
    seed_spread,
)
from ace_bench.store.code import changed_modules, modules_in_words
from ace_bench.store.processes import accepted_code, last_code

Change = Literal["points", "percent"]

MISSING_RUN = "missing"
"""The state of a cell whose run was never begun."""
FEW_SEEDS = 3
"""With fewer seeds a method that adapts is known by these playbooks only."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Row and column of a cell, its unit, the paper's number there, and the margin of ``Column.within``."""

    row: str
    column: str
    unit: str
    paper: Cell | None = None
    within: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One cell over the seeds in ``runs``. ``value`` is ``None`` if it is unknown or there are no runs.

    ``interval`` holds the 95% bounds of a score, or for other numbers the smallest and the largest over seeds.
    ``spread`` is the standard deviation of a score over seeds. ``points`` are the scores by seed, if the value is a
    mean of scores. ``change`` is against the base row, in ``change_unit``. ``p_holm`` is the p-value of
    ``comparison``, corrected for all comparisons of the table. ``few_seeds`` says that the comparison is about these
    playbooks only: a side that adapts has fewer than three seeds. ``derived`` cells are computed from others.

    ``collapsed`` means that the context of some seed collapsed. An interval or test over seeds would not hold then, so
    none is given. ``wide`` is why the interval of a score is wider than 95% needs.

    ``other_models`` says which models answered in place of those that its runs asked for.

    ``state`` is the state of the runs if none has finished. ``refused`` says why the program makes no such run.
    ``once`` says why one run counts where other cells have several seeds. ``unfinished`` are runs that began. ``code``
    says where its runs were made by different code. ``deviations`` are settings of its runs that are not the paper's.
    ``differs`` are those in which they are not the planned runs: they are compared only with cells that differ alike.
    ``elsewhere`` says in what runs differ that are not shown.
    """

    place: Place
    runs: tuple[RunSummary, ...] = ()
    planned: PlannedRun | None = None
    metric: str = ""
    state: str = ""
    refused: str = ""
    unfinished: tuple[RunSummary, ...] = ()
    value: float | None = None
    interval: Interval | None = None
    spread: float | None = None
    change: float | None = None
    derived: bool = False
    comparison: Comparison | None = None
    p_holm: float | None = None
    few_seeds: bool = False
    collapsed: bool = False
    wide: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    once: str = ""
    code: tuple[str, ...] = ()
    other_models: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    points: Seeds = field(default_factory=dict, repr=False)

    @property
    def change_unit(self) -> Change:
        """Whether its change is in percentage points, as for scores, or in percent."""
        return "points" if self.place.unit == "percent" else "percent"

    @property
    def published(self) -> float | None:
        """The paper's number."""
        return self.place.paper.value if self.place.paper else None

    @property
    def difference(self) -> float | None:
        """How far our number is from the paper's, in ``change_unit``."""
        return _change(self.value, self.published, self.change_unit)

    @property
    def samples(self) -> int | None:
        """Number of samples that each run tested, or of scenarios if the score is a mean over them."""
        if self.points:
            return len(next(iter(self.points.values())))
        return int(self.runs[0].value("n") or 0) if self.runs else None

    @property
    def within_noise(self) -> bool:
        """Whether its difference to the base row is not significant at the 5% level, after the correction."""
        return self.p_holm is not None and self.p_holm >= 0.05

    @property
    def significant(self) -> bool:
        """Whether it differs from the base row at the 5% level, after the correction."""
        return self.comparison is not None and not self.within_noise

    @property
    def scope(self) -> str:
        """Which context a score of one seed is about, or "" for several seeds, or without adaptation."""
        kind = str(self.runs[0].metrics["context"]["kind"]).replace("_", " ") if len(self.points) == 1 else "none"
        if kind == "none":
            return ""
        streamed = next(iter(next(iter(self.points.values())).values())).place >= 0
        pronoun = "these" if kind.endswith("s") else "this"
        return f"{pronoun} {kind}" + " and this stream" * streamed

    @property
    def faults(self) -> int | None:
        """Failed rollouts over all seeds: for a score in the tested split, for costs in all."""
        if not self.runs:
            return None
        if self.place.unit == "percent":
            return sum(int(run.value("faults") or 0) for run in self.runs)
        return sum(sum(faults.values()) for run in self.runs for faults in run.metrics["faults"].values())


def measure(
    place: Place, planned: PlannedRun | None, metric: str, runs: Sequence[RunSummary], equal_seeds: int = 0
) -> Measured:
    """Measure a cell from the runs of its plan. Without a finished run, ``state`` says why.

    ``equal_seeds`` is the number of seeds in the table if the runs draw nothing by theirs, else 0. Such runs sent the
    same requests, so the first of them counts.
    """
    done = tuple(run for run in runs if run.finished)
    why_once = _why_once(done) if equal_seeds and max(len(done), equal_seeds) > 1 else ""
    done = done[:1] if why_once else done
    unfinished = tuple(run for run in runs if not run.finished)
    if not done:
        state = ", ".join(sorted({run.state for run in runs})) or MISSING_RUN
        return Measured(place=place, planned=planned, metric=metric, state=state, unfinished=unfinished)
    value = interval = spread = None
    scores = dict[int, Points]()
    code, collapses, errors = list[str](), list[str](), list[str]()
    try:  # a damaged run affects only its own cells
        value = mean_of([run.value(metric) for run in done])
        scores = _points(done, metric) if place.unit == "percent" else {}
        if scores:
            count = sum(run.collapsed for run in done if run.metrics["steps"]) if len(done) > 1 else 0
            text = f"{count} of {len(done)} seeds collapsed: no interval or test over seeds holds"
            collapses, spread = [text] * bool(count), seed_spread(scores)
            interval = None if collapses else score_interval(scores)
        elif value is not None and len(done) > 1:
            values = [run.value(metric) or 0.0 for run in done]
            interval = Interval(low=min(values), high=max(values))
        code = _code_notes(done)
    except (StoreError, DataError) as error:
        errors.append(str(error))
    return Measured(
        place=place,
        runs=done,
        unfinished=unfinished,
        planned=planned,
        metric=metric,
        value=value,
        interval=interval,
        spread=spread,
        collapsed=bool(collapses),
        wide=reasons_score_wide(scores) if scores and interval else (),
        code=tuple(code),
        other_models=tuple(dict.fromkeys(filter(None, (describe_other_models(run.models) for run in done)))),
        once=why_once,
        notes=tuple(dict.fromkeys((*errors, *collapses, *filter(None, map(_leakage, done))))),
        points=scores,
    )


def _why_once(runs: Sequence[RunSummary]) -> str:
    other_seeds = ", ".join(str(run.seed) for run in runs[1:])
    return "1 run: greedy, nothing is drawn" + (f" (also made with seed {other_seeds})" if other_seeds else "")


def _leakage(run: RunSummary) -> str:
    leaked = run.metrics.get("answers_in_prompts")  # runs of older versions did not search
    return str(Leakage(**leaked)) if leaked and leaked["found"] else ""


def _code_notes(runs: Sequence[RunSummary]) -> list[str]:
    """Note cells that average runs of different code, and the changes of code that a user accepted."""
    codes = [last_code(run.processes) for run in runs]
    changed = sorted({name for code, next_code in pairwise(codes) for name in changed_modules(code, next_code)})
    notes = [f"seeds by different code: {modules_in_words(changed)}"] if changed else []
    return [*notes, *(f"seed {run.seed} {accepted}" for run in runs if (accepted := accepted_code(run.processes)))]


def compared_to(cell: Measured, base: Measured, looks: int) -> Measured:
    """Compare a cell with the base row's, by a paired test if both are means of scores.

    Runs that are not the planned ones are compared only where both sides differ from the plan alike.
    """
    if {*cell.differs} != {*base.differs}:
        return cell
    tested, errors = None, list[str]()
    try:
        tested = tested_difference(cell, base, looks)
    except DataError as error:
        errors.append(str(error))
    notes_of_both = tuple(dict.fromkeys((*cell.notes, *base.notes, *errors)))
    change = _change(cell.value, base.value, cell.change_unit)
    has_few_seeds = few_seeds(cell, base)
    return replace(cell, change=change, comparison=tested, few_seeds=has_few_seeds, notes=notes_of_both)


def few_seeds(*sides: Measured) -> bool:
    """Whether a side that adapts has too few seeds, so that a comparison is about its playbooks only."""
    return any(varies(cell) and len(cell.points) < FEW_SEEDS for cell in sides)


def tested_difference(cell: Measured, base: Measured, looks: int) -> Comparison | None:
    """Test a cell against another, whose seeds are averaged where it does not adapt.

    Returns ``None`` if a side is not a mean of scores, if seeds collapsed, or if one sample gives no interval. Raises
    ``DataError`` if the samples differ.
    """
    if not (cell.points and base.points) or cell.collapsed or base.collapsed:
        return None
    tested = compare(cell.points, base.points, base_adapts=varies(base), looks=looks)
    return tested if tested.interval else None


def varies(cell: Measured) -> bool:
    """Whether a cell's runs have a context that they made, which differs from seed to seed."""
    contexts = [(run.metrics["context"], run.metrics["steps"]) for run in cell.runs]
    return any(context["kind"] != "none" and (steps or context["items"]) for context, steps in contexts)


def derive(place: Place, parts: Sequence[Measured], formula: Callable[[list[float]], float | None]) -> Measured:
    """Compute a cell from others, such as an average. It has no interval."""
    values = [part.value for part in parts if part.value is not None]
    state = next((part.state for part in parts if part.state), "")
    value = formula(values) if values and len(values) == len(parts) else None
    deviations = tuple(dict.fromkeys(deviation for part in parts for deviation in part.deviations))
    differs = tuple(dict.fromkeys(chain.from_iterable(part.differs for part in parts)))
    other_models = tuple(dict.fromkeys(chain.from_iterable(part.other_models for part in parts)))
    return Measured(
        place=place,
        state=state,
        value=value,
        other_models=other_models,
        deviations=deviations,
        differs=differs,
        derived=True,
    )


def setting_warning(cells: Iterable[Measured]) -> str:
    """Return the part of a title that marks cells not measured in the paper's setting, or "" if all were."""
    depart = [bool(cell.deviations) for cell in cells if cell.runs]
    part = "in part " * (not all(depart))
    return f" [{part}not the paper's setting]" if any(depart) else ""


def _change(value: float | None, base: float | None, kind: Change) -> float | None:
    if value is None or base is None or (kind == "percent" and base == 0):
        return None
    return value - base if kind == "points" else 100 * (value / base - 1)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, or ``None`` if a value is unknown or missing."""
    known_values = [value for value in values if value is not None]
    return fmean(known_values) if known_values and len(known_values) == len(values) else None


def _points(runs: Sequence[RunSummary], metric: str) -> dict[int, Points]:
    """Return the scores by seed, or nothing if a run has none."""
    scores = {run.seed: points for run in runs if (points := run.points(metric)) is not None}
    return scores if len(scores) == len(runs) else {}
