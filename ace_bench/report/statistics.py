"""Confidence intervals of scores, and paired comparisons between methods that may have several seeds.

A run is a mapping from sample id to its point. Runs that are compared, and runs of other seeds, must have the same
samples. docs/tables-and-figures.md explains the methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from ace_bench.core.errors import DataError
from ace_bench.core.statistics import LEVEL, Array, Estimate, blocks, clusters, paired_difference, score_bounds
from ace_bench.report.looks import level_of_look, overall_p

EQUIVALENCE_LEVEL = 0.9
"""Confidence of the interval that must lie within a margin: two one-sided tests at 5% (Schuirmann 1987)."""
_DECIMALS = 9
"""Scores that differ less are equal."""
_SAMPLES, _BLOCKS = "samples", "blocks of the stream"
_ENOUGH_SEEDS, _ENOUGH_SAMPLES, ENOUGH_DIFFERING = 5, 50, 10
"""With fewer, simulated intervals of differences are wider than they need to be."""
_NEAR_END = 10.0
"""Percentage points from 0 or 100% within which seeds that vary by 4 points or more do not vary normally."""


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The score of one sample in [0, 1], and the group it belongs to ("": the sample is its own group).

    ``place`` is the sample's place in the stream of an online run, -1 otherwise.
    """

    score: float
    group: str = ""
    place: int = -1


Points = Mapping[str, Point]
Seeds = Mapping[int, Points]
"""The runs of one method, by seed."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Bounds of a 95% interval, in percent."""

    low: float
    high: float


def judge_equivalence(interval: Interval, margin: float) -> Literal["equivalent", "contradicted", "inconclusive"]:
    """Say whether the interval of a difference lies within a margin, outside, or neither."""
    if -margin < interval.low and interval.high < margin:
        return "equivalent"
    return "contradicted" if interval.low > margin or interval.high < -margin else "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference between a method and a base on the same samples, in percentage points.

    ``better`` and ``worse`` count samples whose mean over seeds differs. ``p`` is two-sided and below 0.05 if and only
    if the interval excludes 0. ``test`` names the units. ``seeds_p`` is the t test over seeds for these samples.
    ``spread`` is the standard deviation of the difference over seeds. ``detectable`` is about the smallest difference
    that the test finds with a power of 80%. ``wide`` is why the interval is wider than 95% needs (``reasons_wide``).
    ``near_end`` says that it may be too narrow: one side's seeds vary near 0 or 100%, and the other has one.
    ``p`` and the intervals are corrected for ``looks`` at the results while runs are added.
    """

    n: int
    difference: float
    interval: Interval | None
    better: int
    worse: int
    p: float
    test: str
    seeds_p: float | None = None
    spread: float | None = None
    detectable: float | None = None
    wide: tuple[str, ...] = ()
    near_end: bool = False
    looks: int = 1
    estimate: Estimate | None = field(default=None, repr=False)

    def interval_at(self, level: float) -> Interval | None:
        """Return the interval at another level than 95%."""
        if self.estimate is None:
            return None
        return _interval(*self.estimate.bounds(level_of_look(level, self.looks)), least=-1.0)

    @property
    def discordant(self) -> int:
        """Number of samples with different scores."""
        return self.better + self.worse


def mean_score(runs: Seeds) -> float:
    """Return the mean over samples and seeds, in percent."""
    return 100.0 * float(scores_of([runs])[0].mean())


def score_interval(runs: Seeds) -> Interval | None:
    """Return the Wilson interval of ``mean_score``, or ``None`` for fewer than two groups of samples.

    With several seeds its variance includes that between seeds. With one, it is about this run's context only.
    """
    bounds = score_bounds(scores_of([runs])[0], units_of([runs]).groups)
    return _interval(*bounds) if bounds else None


def reasons_score_wide(runs: Seeds) -> tuple[str, ...]:
    """Return why the ``score_interval`` is wider than 95% needs."""
    units = units_of([runs])
    return reasons_wide(len(runs), None, units.independent, streams=units.name == _BLOCKS)


def seed_spread(runs: Seeds) -> float | None:
    """Return the standard deviation of the score over seeds, in percentage points, or ``None`` for one seed."""
    (scores,) = scores_of([runs])
    return _spread(scores) if len(scores) > 1 else None


def compare(ours: Seeds, base: Seeds, *, base_adapts: bool = True, looks: int = 1) -> Comparison:
    """Compare with a base, paired by sample and, where both have the same seeds, by seed.

    A base that does not adapt has no playbook that varies with the seed: its seeds are averaged. ``looks`` is how often
    the results are looked at in all, while runs are added. Raises ``DataError`` if the samples differ.
    """
    scores, base_scores = scores_of([ours, base])
    if not base_adapts:
        base_scores = base_scores.mean(axis=0, keepdims=True)
    units = units_of([ours, base])
    gains = scores.mean(axis=0) - base_scores.mean(axis=0)
    signs = [*np.sign(gains.round(_DECIMALS))]
    is_paired = ours.keys() == base.keys() or 1 in (len(scores), len(base_scores))
    estimate = paired_difference(scores, base_scores, units.groups, paired=is_paired)
    repeated = max(len(scores), len(base_scores)) > 1
    detectable = estimate.detectable if estimate else None
    return Comparison(
        n=gains.size,
        difference=100.0 * float(gains.mean()),
        interval=_interval(*estimate.bounds(level_of_look(LEVEL, looks)), least=-1.0) if estimate else None,
        better=signs.count(1),
        worse=signs.count(-1),
        p=overall_p(estimate.p, looks) if estimate else 1.0,
        test=f"t over {'seeds and ' if repeated else ''}{units.name}",
        seeds_p=estimate.seeds_p if estimate else None,
        spread=_spread(scores - base_scores) if repeated and is_paired else None,
        detectable=None if detectable is None else 100.0 * detectable,
        wide=(
            *reasons_wide(len(scores), len(base_scores), units.independent, streams=units.name == _BLOCKS),
            *[f"under {ENOUGH_DIFFERING} samples differ"] * (len(signs) - signs.count(0) < ENOUGH_DIFFERING),
        ),
        near_end=_varies_near_end(scores, base_scores),
        looks=looks,
        estimate=estimate,
    )


def _varies_near_end(*sides: Array) -> bool:
    """Whether a side has several seeds and a mean near 0 or 100%, so that rare bad seeds may not be among them.

    Two such sides cancel.
    """
    several = [100.0 * float(side.mean()) for side in sides if len(side) > 1]
    return len(several) == 1 and min(several[0], 100.0 - several[0]) <= _NEAR_END


def reasons_wide(seeds: int, base: int | None, units: int, *, streams: bool) -> tuple[str, ...]:
    """Return what makes an interval hold the truth in up to 100% of cases, as simulated.

    It returns nothing for 93 to 97.5%.

    It belongs to a difference of two sides with ``seeds`` and ``base`` seeds, or to a score if ``base`` is ``None``. A
    base that does not adapt has one seed. ``units`` are samples, or groups of them. ``make statistics`` measures the
    designs with a reason apart from the others.
    """
    fewest, most = sorted((seeds, seeds if base is None else base))
    scores = base is None
    reasons = {
        f"fewer than {_ENOUGH_SEEDS} streams": streams and most < _ENOUGH_SEEDS,
        f"2 to {_ENOUGH_SEEDS - 1} seeds": scores and not streams and 1 < seeds < _ENOUGH_SEEDS,
        "two seeds on a side": not scores and not streams and 2 in (fewest, most),
        "3 or 4 seeds against one": not scores and not streams and fewest == 1 and most in (3, 4),
        f"under {_ENOUGH_SAMPLES} samples or groups": units < _ENOUGH_SAMPLES and (streams or most > 1 or not scores),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


@dataclass(frozen=True, kw_only=True)
class Units:
    """Groups of samples that are independent of each other, as indices into the sorted sample ids.

    ``independent`` is their number, or in a stream the number of samples in its blocks.
    """

    name: str
    groups: list[list[int]]
    independent: int


def scores_of(methods: Sequence[Seeds]) -> list[Array]:
    """Return the scores of each method by seed and sample, in their order, not the journal's."""
    if not all(methods) or not next(iter(methods[0].values())):
        raise DataError("there are no scores to compare; choose runs that evaluated at least one sample")
    samples = next(iter(methods[0].values())).keys()
    for run in (run for method in methods for run in method.values()):
        if run.keys() != samples:
            odd = min(run.keys() ^ samples)
            raise DataError(f"runs attempted different samples ({odd} is missing in one); compare runs of one limit")
    names = sorted(samples)
    return [
        np.array([[method[seed][name].score for name in names] for seed in sorted(method)], dtype=float)
        for method in methods
    ]


def units_of(methods: Sequence[Seeds]) -> Units:
    """Return groups of samples, or blocks of consecutive samples where all streams of a method have the same order."""
    points = next(iter(methods[0].values()))
    names = sorted(points)
    groups = clusters(range(len(names)), lambda index: points[names[index]].group)
    for method in methods:
        orders = {tuple(run[name].place for name in names) for run in method.values()}
        order = next(iter(orders))
        if len(orders) == 1 and order[0] >= 0:
            groups.sort(key=lambda group: min(order[index] for index in group))
            return Units(name=_BLOCKS, groups=blocks(groups), independent=len(groups))
    name = _SAMPLES if len(groups) == len(names) else "groups"
    return Units(name=name, groups=groups, independent=len(groups))


def _spread(scores: Array) -> float:
    return 100.0 * float(scores.mean(axis=1).std(ddof=1))


def _interval(low: float, high: float, *, least: float = 0.0) -> Interval:
    return Interval(low=100.0 * max(least, low), high=100.0 * min(1.0, high))
