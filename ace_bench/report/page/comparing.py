"""Chosen runs side by side: the seeds of a run are one side, and pairs of sides are tested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.listing import BASE
from ace_bench.report.records import RunSummary, check_comparable, latest_repetitions
from ace_bench.report.statistics import Points, Seeds, compare
from ace_bench.report.tables.cells import Place, measure


@dataclass(frozen=True, kw_only=True)
class _Side:
    """The chosen seeds of one run, by their keys. ``problem`` says why they have no scores by sample."""

    key: str
    runs: Mapping[str, RunSummary]
    points: Seeds
    problem: str

    @property
    def seeds(self) -> int:
        """How many seeds were chosen, finished or not."""
        return len({run.seed for run in self.runs.values()})

    @property
    def first(self) -> RunSummary:
        """Any of its finished runs."""
        return next(run for run in self.runs.values() if run.finished)


def comparison(runs: Mapping[str, RunSummary]) -> Record:
    """Return the scores by sample of each side, and the paired test of each pair, or why there is none.

    The seeds of a run are one side, which has the key of its first one. Only finished seeds count. Runs of
    ``method=base`` come first, as the base of pairs. The page corrects the p-values for the pairs that it shows.
    """
    members: dict[str, dict[str, RunSummary]] = {}
    for key, run in runs.items():
        members.setdefault(run.digest, {})[key] = run
    sides = sorted(map(_side, members.values()), key=lambda side: not _is_base(side))
    return {
        "sides": [
            {"key": side.key, "runs": [*side.runs], "seeds": len(side.points), "of": side.seeds} for side in sides
        ],
        "scores": {side.key: _mean_by_sample(side.points) for side in sides},
        "pairs": [_pair(ours, base) for base, ours in combinations(sides, 2)],
    }


def _side(runs: Mapping[str, RunSummary]) -> _Side:
    finished = [run for run in runs.values() if run.finished]
    points, problem = dict[int, Points](), "" if finished else "it is not finished"
    try:
        for seed, run in latest_repetitions(finished, lambda run: run.seed).items():
            run_points = run.points(run.metrics["headline"]["metric"])
            if run_points is None:
                problem = "its metric is not a mean over samples"
            else:
                points[seed] = run_points
    except StoreError as error:
        problem = str(error)
    return _Side(key=next(iter(runs)), runs=runs, points={} if problem else points, problem=problem)


def _is_base(side: _Side) -> bool:
    return all(run.method == BASE for run in side.runs.values())


def _mean_by_sample(points: Seeds) -> Mapping[str, float]:
    samples = next(iter(points.values()), {})
    if any(run.keys() != samples.keys() for run in points.values()):
        return {}  # the tests say so
    return {sample: fmean(run[sample].score for run in points.values()) for sample in samples}


def _pair(ours: _Side, base: _Side) -> Record:
    pair = {"ours": ours.key, "base": base.key}
    if problem := ours.problem or base.problem:
        return {**pair, "problem": problem}
    try:
        check_comparable(ours.first, base.first)
        tested = msgspec.to_builtins(compare(ours.points, base.points, base_adapts=not _is_base(base)))
    except DataError as error:
        return {**pair, "problem": str(error)}
    return {**pair, **{name: value for name, value in tested.items() if name != "estimate"}}


def seed_intervals(runs: Sequence[RunSummary], shown_digest: int) -> Mapping[str, Record]:
    """Return the 95% interval of each run that has several finished seeds, as tables give it, or why there is none.

    Runs are named by the first ``shown_digest`` characters of their digest.
    """
    groups: defaultdict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if run.finished:
            groups[run.digest[:shown_digest]].append(run)
    intervals: dict[str, Record] = {}
    for name, repeated in groups.items():
        seeds = [*latest_repetitions(repeated, lambda run: run.seed).values()]
        if len(seeds) > 1:
            drawn = any(run.seeded for run in seeds)
            metric = seeds[0].metrics["headline"]["metric"]
            cell = measure(Place(row="", column="", unit="percent"), None, metric, seeds, 0 if drawn else len(seeds))
            bounds = (cell.interval.low, cell.interval.high) if cell.interval else None
            why = "seeds draw nothing" if cell.once else "seeds collapsed" if cell.collapsed else ""
            intervals[name] = {"ci95": bounds, "note": why or "no interval" * (bounds is None), "runs": len(repeated)}
    return intervals
