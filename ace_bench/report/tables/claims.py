"""The paper's claims, computed from our runs: differences of cells, savings and shares, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.statistics import LEVEL, Estimate, Source
from ace_bench.report.experiments import Experiments
from ace_bench.report.looks import level_of_look
from ace_bench.report.paper.claims import Difference, PaperClaim, paper_claims
from ace_bench.report.statistics import EQUIVALENCE_LEVEL, Interval, Point, Points, Seeds, compare
from ace_bench.report.tables.cells import FEW_SEEDS, Measured, Place, varies
from ace_bench.report.tables.claim_result import ClaimResult, Verdict
from ace_bench.report.tables.results_index import Selection

_STREAM = 10**7
"""More than the samples of any stream, so that places in different streams differ."""
_LEAST = 1e-6
"""Smaller shares are raised to this one before their logarithm."""


def claim_results(
    experiments: Experiments,
    selection: Selection,
    other_models: Mapping[str, Selection] | None = None,
    *,
    looks: int = 1,
) -> list[ClaimResult]:
    """Compute all claims from runs of one variant.

    ``other_models`` holds runs of the paper's other models under the same conditions. The intervals of the primary
    claims about scores have the levels of Holm's method for that family. All are corrected for ``looks`` at the results
    while runs are added.
    """
    selections = {**(other_models or {}), experiments.table("1").model: selection}
    results = []
    for claim in paper_claims(experiments):
        chosen = selections.get(claim.model) or (selection if claim.run else None)
        if chosen is None:
            results.append(ClaimResult(claim=claim, state=f"no runs with {claim.model}"))
        else:
            results.append(_Reader(experiments=experiments, selection=chosen, looks=looks).result(claim))
    return _with_family_levels(results)


def _with_family_levels(results: Sequence[ClaimResult]) -> list[ClaimResult]:
    """Widen the intervals of the primary family: each has the level at which Holm's method tests it.

    Claims without a verdict also count as tests, so that later runs do not change the level of others.
    """
    family = [result for result in results if result.claim.primary]
    ready = [result for result in family if result.comparison and not result.few and not result.refused]
    rejected, levels = 0, dict[str, float]()
    for result in sorted(ready, key=lambda result: result.comparison.p if result.comparison else 1.0):
        alpha = (1 - LEVEL) / (len(family) - rejected)
        levels[result.claim.than] = 1 - alpha
        rejected += result.comparison is not None and result.comparison.p < alpha
    default = 1 - (1 - LEVEL) / max(1, len(family) - rejected)
    return [
        _at_level(result, levels.get(result.claim.than, default)) if result.claim.primary else result
        for result in results
    ]


def _at_level(result: ClaimResult, level: float) -> ClaimResult:
    tested = result.comparison
    return replace(result, level=level, interval=tested.interval_at(level)) if tested else result


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A measured cell with its coefficient. ``ref`` names it as ``table/row/column``.

    ``published`` is the number of a row that has no runs here.
    """

    cell: Measured
    coefficient: float
    ref: str
    split: str
    published: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Reader:
    experiments: Experiments
    selection: Selection
    looks: int

    def result(self, claim: PaperClaim) -> ClaimResult:
        if claim.run:
            table, row, column = claim.run.split("/")
            parts = [[self._part(table, row, column, 1.0)]]
        else:
            parts = [[*self._parts(difference)] for difference in claim.differences]
        all_parts = [part for group in parts for part in group]
        rows = sorted({part.ref.rpartition("/")[0] for part in all_parts if not part.cell.runs})
        missing = [row for row in rows if not self._is_published(row)]
        deviations = tuple(dict.fromkeys(text for part in all_parts for text in part.cell.deviations))
        empty = ClaimResult(claim=claim, looks=self.looks, deviations=deviations)
        if missing:
            return replace(empty, state=f"cells without a finished run in the rows {', '.join(missing)}")
        try:
            runs = (run for part in all_parts for run in part.cell.runs)
            adapted = {run.folder: run.collapsed for run in runs if run.metrics["steps"]}  # each run once
            empty = replace(empty, collapsed=sum(adapted.values()), adapted=len(adapted))
            if claim.unit == "points":
                return _test_claim(empty, parts[0])
            return _read_share(empty, parts[0][0].cell) if claim.run else _measure_saving(empty, parts)
        except (DataError, StoreError) as error:
            return replace(empty, state=str(error))

    def _is_published(self, table_row: str) -> bool:
        table, row = table_row.split("/")
        return row in self.experiments.table(table).not_reproducible

    def _parts(self, difference: Difference) -> Iterator[_Part]:
        """Yield the measured cells. A column that is a mean stands for its columns with their weights."""
        for ref, coefficient in difference.cells.items():
            table, row, column = ref.split("/")
            spec = self.experiments.table(table).columns[column]
            weights = spec.weights or (1.0,) * len(spec.mean_of)
            weighted = {column: 1.0} if spec.metric else dict(zip(spec.mean_of, weights, strict=True))
            for name, weight in weighted.items():
                yield self._part(table, row, name, coefficient * weight / sum(weighted.values()))

    def _part(self, table: str, row: str, column: str, coefficient: float) -> _Part:
        spec = self.experiments.table(table).columns[column]
        ref, split = f"{table}/{row}/{column}", f"{spec.task}/{spec.split}"
        where = Place(row=row, column=column, unit=spec.unit)
        if self._is_published(f"{table}/{row}"):
            cell = Measured(place=where, metric=spec.metric)
            published = self.experiments.cell(ref).value
            return _Part(cell=cell, coefficient=coefficient, ref=ref, split=split, published=published)
        planned, metric = self.experiments.run(table, row, column), self.experiments.metric(table, row, column)
        cell = self.selection.measure(where, planned, metric)
        if cell.runs:  # composing configurations is slow
            model = self.experiments.table(table).model
            cell = replace(cell, deviations=self.selection.deviations(planned, model))
        return _Part(cell=cell, coefficient=coefficient, ref=ref, split=split)


def _test_claim(result: ClaimResult, parts: Sequence[_Part]) -> ClaimResult:
    """Compare the cells that a claim adds with those that it subtracts.

    Where runs of one side collapsed they count as their cells' best runs (``_as_the_best``), which leaves the verdict
    that this makes harder.
    """
    sizes = {(part.split, part.cell.metric): part.cell.samples or 0 for part in parts if part.published is None}
    added = [part for part in parts if part.coefficient > 0]
    taken = [part for part in parts if part.coefficient < 0]
    added_collapsed, taken_collapsed = (any(map(_collapsed_seeds, side)) for side in (added, taken))
    if added_collapsed != taken_collapsed and all(map(_has_whole_runs, parts)):
        measured = _difference_of_means(parts)
        added, taken = ([_as_the_best(part) for part in side] for side in (added, taken))
        left: Verdict = "supported" if taken_collapsed else "contradicted"
        result = replace(result, left_by_collapses=left, with_collapses=measured)
    gains = _together(added, sizes)
    if all(part.published is not None for part in taken):
        base, base_adapts = _published_scores(taken, sizes, next(iter(gains.values()))), False
    else:
        base, base_adapts = _together(taken, sizes), any(varies(part.cell) for part in taken)
    tested = compare(gains, base, base_adapts=base_adapts, looks=result.looks)
    adapting = [
        side
        for side, parts_of_side in ((gains, added), (base, taken))
        if any(varies(part.cell) for part in parts_of_side)
    ]
    seeds = tuple(sorted(set[int]().union(*(adapting or [gains]))))
    level = LEVEL if result.claim.within is None else EQUIVALENCE_LEVEL
    return replace(
        result,
        seeds=seeds,
        value=tested.difference,
        comparison=tested,
        level=level,
        interval=tested.interval_at(level),
        few=any(len(side) < FEW_SEEDS for side in adapting),
    )


def _collapsed_seeds(part: _Part) -> set[int]:
    return {run.seed for run in part.cell.runs if run.metrics["steps"] and run.collapsed}


def _has_whole_runs(part: _Part) -> bool:
    """Whether at least two seeds vary without a collapse, or none collapsed."""
    collapsed = _collapsed_seeds(part)
    return not collapsed or len(part.cell.points.keys() - collapsed) > 1


def _as_the_best(part: _Part) -> _Part:
    """Give each run that collapsed the scores of its cell's best run."""
    points, collapsed = part.cell.points, _collapsed_seeds(part)
    if not collapsed:
        return part
    best = max(points.values(), key=lambda run: fmean(point.score for point in run.values()))
    scores = {seed: best if seed in collapsed else run for seed, run in points.items()}
    return replace(part, cell=replace(part.cell, points=scores))


def _difference_of_means(parts: Sequence[_Part]) -> float:
    values = ((part.cell.value if part.published is None else part.published) or 0.0 for part in parts)
    return sum(part.coefficient * value for part, value in zip(parts, values, strict=True))


def _published_scores(parts: Sequence[_Part], sizes: Mapping[tuple[str, str], int], points: Points) -> Seeds:
    """Return the published numbers as equal scores of all samples."""
    points_by_name = dict[str, Point]()
    for part in parts:
        key = (part.split, part.cell.metric)
        score = -part.coefficient * (part.published or 0.0) / 100 * sum(sizes.values()) / sizes[key]
        samples = ((name, point.group) for name, point in points.items() if name.startswith(f"{'/'.join(key)}/"))
        points_by_name |= {name: Point(score=score, group=group) for name, group in samples}
    return {0: points_by_name}


def _together(parts: Sequence[_Part], sizes: Mapping[tuple[str, str], int]) -> Seeds:
    """Return scores by seed whose mean is the sum of the parts' means times their coefficients.

    Test sets are pooled, and each sample counts with the weight of its set. Groups (scenarios) stay together.
    """
    return {seed: _pool_points(parts, sizes, seed) for seed in _common_seeds(parts)}


def _common_seeds(parts: Sequence[_Part]) -> list[int]:
    """Return the seeds that have finished in all parts. A part that is run once stands for every seed.

    Raises ``DataError`` if there is none.
    """
    seeds = [{run.seed for run in part.cell.runs} for part in parts if not part.cell.once]
    common = set.intersection(*seeds) if seeds else {parts[0].cell.runs[0].seed}
    if not common:
        raise DataError(f"no seed has finished in all of {', '.join(part.ref for part in parts)}")
    return sorted(common)


def _pool_points(parts: Sequence[_Part], sizes: Mapping[tuple[str, str], int], seed: int) -> Points:
    total = sum(sizes.values())
    order = [*sizes]
    pooled: dict[str, Point] = {}
    for part in parts:
        key = (part.split, part.cell.metric)
        weight = abs(part.coefficient) * total / sizes[key]
        points = part.cell.points
        for sample, point in (next(iter(points.values())) if part.cell.once else points[seed]).items():
            name = f"{part.split}/{part.cell.metric}/{sample}"
            group_name = sample if part.cell.metric == "sgc" else point.group
            position = point.place + _STREAM * order.index(key) if point.place >= 0 else -1
            before = pooled[name].score if name in pooled else 0.0
            group = f"{part.split}/{group_name}" if group_name else ""
            pooled[name] = Point(score=before + weight * point.score, group=group, place=position)
    return pooled


def _measure_saving(result: ClaimResult, parts: Sequence[Sequence[_Part]]) -> ClaimResult:
    """Compute a saving or an increase by seed. Raises ``DataError`` if no seed has all runs."""
    all_parts = [part for group in parts for part in group]
    seeds = _common_seeds(all_parts)
    differences = result.claim.differences
    rises = any(part.cells[part.relative_to] < 0 for part in differences)
    return _with_ratio(result, seeds, [_saving_of(differences, parts, seed) for seed in seeds], sign=1 if rises else -1)


def _read_share(result: ClaimResult, cell: Measured) -> ClaimResult:
    """Read a share that each run has, in percent."""
    shares = [run.value(result.claim.metric) for run in cell.runs]
    values = [None if share is None else 100 * share for share in shares]
    return _with_ratio(result, [run.seed for run in cell.runs], values, sign=-1)


def _with_ratio(result: ClaimResult, seeds: Sequence[int], values: Sequence[float | None], *, sign: int) -> ClaimResult:
    """Give the mean of values in percent, with a t interval over seeds of the logarithm of what remains (or is added).

    Costs are ratios, whose logarithms vary about equally up and down. A saving therefore never exceeds 100%.
    """
    result = replace(result, seeds=tuple(seeds), few=len(seeds) < FEW_SEEDS)
    logs = [math.log(max(_LEAST, 1 + sign * value / 100)) for value in values if value is not None]
    if len(logs) < len(values):
        return replace(result, state="unknown: a backbone did not report it")

    def percent(log: float) -> float:
        return sign * 100 * (math.exp(log) - 1) + 0.0  # not -0.0

    mean, count = fmean(logs), len(logs)
    if count == 1:
        return replace(result, value=percent(mean))
    level = level_of_look(LEVEL, result.looks)
    spread = Source(variance=variance(logs, mean) / count, df=count - 1)
    bounds = [percent(bound) for bound in Estimate(value=mean, samples=spread, units=count).bounds(level)]
    interval = Interval(low=min(bounds), high=max(bounds))
    return replace(result, value=percent(mean), interval=interval, equal=max(logs) - min(logs) < _LEAST)


def _saving_of(differences: Sequence[Difference], parts: Sequence[Sequence[_Part]], seed: int) -> float | None:
    values = []
    for difference, group in zip(differences, parts, strict=True):
        runs = ((part, run) for part in group for run in part.cell.runs if part.cell.once or run.seed == seed)
        numbers = {part.ref: run.value(part.cell.metric) for part, run in runs}
        known_numbers = {reference: value for reference, value in numbers.items() if value is not None}
        if known_numbers.keys() < numbers.keys() or not known_numbers[difference.relative_to]:
            return None
        values.append(difference.value(known_numbers))
    return fmean(values)
