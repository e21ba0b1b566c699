"""The paper's claims, computed from our runs: differences with intervals, corrected p-values and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.statistics import holm
from ace_bench.report.experiments import Experiments
from ace_bench.report.paper.claims import Difference, PaperClaim, paper_claims
from ace_bench.report.statistics import Comparison, Interval, Point, Points, Seeds, compare
from ace_bench.report.tables.cells import Measured, Place
from ace_bench.report.tables.results_index import Selection

Verdict = Literal["supported", "not supported", "not enough runs"]

_STREAM = 10**7
"""More than the samples of any stream, so that places in different streams differ."""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim by our runs; ``value`` is in the claim's unit, ``None`` where a run is missing (``state``).

    A claim about scores has a ``comparison`` and ``p_holm``, corrected for all claims about scores. Any other has
    ``interval``: the smallest and largest value over seeds.
    """

    claim: PaperClaim
    seeds: tuple[int, ...] = ()
    value: float | None = None
    interval: Interval | None = None
    comparison: Comparison | None = None
    p_holm: float | None = None
    state: str = ""
    deviations: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What our runs say of the claim that there is a gain.

        Scores: supported if the gain is significant at 5% after the correction. If not, the runs are not enough where
        a gain of the paper's size could not have been found. Costs have no test: at least three seeds must all save.
        """
        if self.value is None:
            return "not enough runs"
        tested = self.comparison
        if tested is None:
            if self.interval is not None and self.interval.high < 0:
                return "not supported"
            if len(self.seeds) < 3 or self.interval is None:
                return "not enough runs"
            return "supported" if self.interval.low > 0 else "not supported"
        significant = self.p_holm is not None and self.p_holm < 0.05
        if significant:
            return "supported" if tested.difference > 0 else "not supported"
        found = tested.detectable is not None and tested.detectable <= abs(self.claim.value)
        return "not supported" if found else "not enough runs"

    @property
    def scope(self) -> str:
        """The warning for one seed."""
        return "this playbook only" if len(self.seeds) == 1 else ""


def claim_results(experiments: Experiments, selection: Selection) -> list[ClaimResult]:
    """Compute all claims from the runs of one variant."""
    reader = _Reader(experiments=experiments, selection=selection)
    found = [reader.result(claim) for claim in paper_claims(experiments.paper)]
    tested = [result.comparison.p for result in found if result.comparison]
    adjusted = iter(holm(tested))
    return [replace(result, p_holm=next(adjusted)) if result.comparison else result for result in found]


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A measured cell with its coefficient; ``place`` names its test set."""

    cell: Measured
    coefficient: float
    place: str
    split: str


@dataclass(frozen=True, kw_only=True)
class _Reader:
    experiments: Experiments
    selection: Selection

    def result(self, claim: PaperClaim) -> ClaimResult:
        parts = [[*self._parts(difference)] for difference in claim.differences]
        every = [part for some in parts for part in some]
        missing = sorted({part.place.rpartition("/")[0] for part in every if not part.cell.runs})
        deviations = tuple(dict.fromkeys(text for part in every for text in part.cell.deviations))
        empty = ClaimResult(claim=claim, deviations=deviations)
        if missing:
            return replace(empty, state=f"cells without a finished run in the rows {', '.join(missing)}")
        try:
            if claim.unit == "points":
                return _tested(empty, parts[0])
            return _saved(empty, parts)
        except (DataError, StoreError) as error:
            return replace(empty, state=str(error))

    def _parts(self, difference: Difference) -> Iterator[_Part]:
        for ref, coefficient in difference.cells.items():
            table, row, column = ref.split("/")
            for name, weight in self._measured(table, column).items():
                yield self._part(table, row, name, coefficient * weight)

    def _measured(self, table: str, column: str) -> Mapping[str, float]:
        """Return the measured columns of which a column is a mean, with their weights."""
        spec = self.experiments.paper.table(table).columns[column]
        if spec.metric:
            return {column: 1.0}
        weights = spec.weights or (1.0,) * len(spec.mean_of)
        return {part: weight / sum(weights) for part, weight in zip(spec.mean_of, weights, strict=True)}

    def _part(self, table: str, row: str, column: str, coefficient: float) -> _Part:
        spec = self.experiments.paper.table(table).columns[column]
        planned, metric = self.experiments.run(table, row, column), self.experiments.metric(table, row, column)
        cell = self.selection.measures.cell(Place(row=row, column=column, unit=spec.unit), planned, metric)
        model = self.experiments.paper.table(table).model
        cell = replace(cell, deviations=self.selection.deviations(planned, model))
        split = f"{spec.task}/{spec.split}"
        return _Part(cell=cell, coefficient=coefficient, place=f"{table}/{row}/{column}", split=split)


def _tested(result: ClaimResult, parts: Sequence[_Part]) -> ClaimResult:
    """Compare the cells that a claim adds with those that it subtracts."""
    sizes = {(part.split, part.cell.metric): part.cell.samples or 0 for part in parts}
    ours = _together([part for part in parts if part.coefficient > 0], sizes)
    base = _together([part for part in parts if part.coefficient < 0], sizes)
    tested = compare(ours, base)
    seeds = tuple(sorted({*ours, *base} if min(len(ours), len(base)) > 1 else {*ours} & {*base} or {*ours}))
    return replace(result, seeds=seeds, value=tested.difference, comparison=tested)


def _together(parts: Sequence[_Part], sizes: Mapping[tuple[str, str], int]) -> Seeds:
    """Return scores by seed whose mean is the sum of the parts' means times their coefficients.

    Test sets are pooled, and each sample counts with the weight of its set. Groups (scenarios) stay together.
    """
    common = set.intersection(*({*part.cell.points} for part in parts))
    if not common:
        raise DataError(f"no seed has finished in all of {', '.join(part.place for part in parts)}")
    return {seed: _pooled(parts, sizes, seed) for seed in sorted(common)}


def _pooled(parts: Sequence[_Part], sizes: Mapping[tuple[str, str], int], seed: int) -> Points:
    total = sum(sizes.values())
    order = [*sizes]
    found: dict[str, Point] = {}
    for part in parts:
        key = (part.split, part.cell.metric)
        weight = abs(part.coefficient) * total / sizes[key]
        for sample, point in part.cell.points[seed].items():
            name = f"{part.split}/{part.cell.metric}/{sample}"
            own = sample if part.cell.metric == "sgc" else point.group
            place = point.place + _STREAM * order.index(key) if point.place >= 0 else -1
            before = found[name].score if name in found else 0.0
            group = f"{part.split}/{own}" if own else ""
            found[name] = Point(score=before + weight * point.score, group=group, place=place)
    return found


def _saved(result: ClaimResult, parts: Sequence[Sequence[_Part]]) -> ClaimResult:
    """Compute a saving by seed; raises ``DataError`` where no seed has all runs."""
    every = [part for some in parts for part in some]
    seeds = sorted(set.intersection(*({run.seed for run in part.cell.runs} for part in every)))
    if not seeds:
        raise DataError(f"no seed has finished in all of {', '.join(part.place for part in every)}")
    values = [_saving(result.claim.differences, parts, seed) for seed in seeds]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return replace(result, seeds=tuple(seeds), state="unknown: a backbone did not report it")
    interval = Interval(low=min(known), high=max(known))
    return replace(result, seeds=tuple(seeds), value=fmean(known), interval=interval)


def _saving(differences: Sequence[Difference], parts: Sequence[Sequence[_Part]], seed: int) -> float | None:
    values = []
    for difference, some in zip(differences, parts, strict=True):
        numbers: dict[str, float] = {}
        for part in some:
            run = next(run for run in part.cell.runs if run.seed == seed)
            value = run.value(part.cell.metric)
            if value is None:
                return None
            numbers[part.place] = value
        if not numbers[difference.relative_to]:
            return None
        values.append(difference.value(numbers))
    return fmean(values)
