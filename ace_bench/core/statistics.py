"""Means over seeds and samples: intervals, tests and the smallest detectable difference.

docs/tables-and-figures.md explains the methods and gives their measured coverage.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[np.float64]

RESAMPLES = 1_000
LEVEL, POWER = 0.95, 0.8
"""Confidence of intervals, and the power at which the smallest detectable difference is found."""
_PRECISION, _ITERATIONS = 1e-13, 200
_SMALLEST_P, _HALVINGS = 1e-12, 40
"""No test is certain."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source of chance: the variance that it gives a mean, and the degrees of freedom of that variance."""

    variance: float
    df: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean, and the sources of its error: the samples, and the seeds of each side that has several.

    ``units`` is the number of independent groups of samples.
    """

    value: float
    samples: Source
    units: int
    seeds: tuple[Source, ...] = ()

    @property
    def variance(self) -> float:
        """Variance of the mean."""
        return sum(source.variance for source in (self.samples, *self.seeds))

    def reach(self, level: float = LEVEL) -> float:
        """Half the width of the interval: the root of the sum of the squared reaches over each source.

        So it is never narrower than the t interval over seeds, or that over samples, alone (Zou and Donner 2008).
        """
        sources = (self.samples, *self.seeds)
        return math.sqrt(sum(source.variance * _quantile(source.df, level) ** 2 for source in sources))

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """Bounds of the interval."""
        return self.value - self.reach(level), self.value + self.reach(level)

    @property
    def wilson(self) -> tuple[float, float]:
        """Bounds for a mean of scores in [0, 1]: Wilson's, with the number of samples that has this variance.

        Where the variance is 0, the number of units takes its place (Korn and Graubard 1998).
        """
        spread, variance = self.value * (1 - self.value), self.variance
        if variance <= 0 or spread <= 0:
            return wilson_bounds(self.value, self.units, _quantile(self.samples.df, LEVEL))
        return wilson_bounds(self.value, spread / variance, self.reach() / math.sqrt(variance))

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the mean is 0: an interval of level 1 - p ends there."""
        from scipy.special import stdtrit

        if self.variance <= 0:
            return float(self.value == 0)
        sources = [(source.variance, source.df) for source in (self.samples, *self.seeds)]
        low, high = math.log(_SMALLEST_P), 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            tail = math.exp(middle) / 2
            outside = sum(variance * stdtrit(df, tail) ** 2 for variance, df in sources) > self.value**2
            low, high = (middle, high) if outside else (low, middle)
        return math.exp(high)

    @property
    def seeds_p(self) -> float | None:
        """Two-sided p-value of the t test over seeds, for fixed samples; ``None`` if the seeds' means are equal."""
        from scipy.special import stdtr

        total = sum(source.variance for source in self.seeds)
        if total <= 0:
            return None
        df = total**2 / sum(source.variance**2 / source.df for source in self.seeds)
        return max(float(2 * stdtr(df, -abs(self.value) / math.sqrt(total))), _SMALLEST_P)

    @property
    def detectable(self) -> float | None:
        """About the mean that a two-sided test at the 5% level finds with a power of 80%; ``None`` if nothing varies.

        The degrees of freedom are the harmonic mean of those of the sources, weighted by their variances.
        """
        from scipy.special import nctdtrinc

        variance = self.variance
        if variance <= 0:
            return None
        df = variance / sum(source.variance / source.df for source in (self.samples, *self.seeds))
        return float(nctdtrinc(df, 1 - POWER, self.reach() / math.sqrt(variance))) * math.sqrt(variance)


def estimate(
    gains: Array, groups: Sequence[Sequence[int]], *, sides: Sequence[Array] = (), prior: float = 0.0
) -> Estimate | None:
    """Estimate the mean of ``gains``, by sample; ``None`` for fewer than two groups of samples.

    Where gains are means over seeds, ``sides`` are the scores (seeds, samples) that were averaged, each of at least two
    seeds. ``prior`` adds two samples, one with this gain and one with its negative.

    The variance is that of crossed random effects. That of samples is at least as large as if samples of one group were
    independent; where all seeds have one mean, it is that of the averaged gains.
    """
    sums, sizes = _sums(gains, groups), np.array([len(group) for group in groups], dtype=float)
    if prior:
        gains, sums = np.append(gains, [prior, -prior]), np.append(sums, [prior, -prior])
        sizes = np.append(sizes, [1.0, 1.0])
    units, n = len(sums), gains.size
    if units < 2:
        return None
    value = float(gains.mean())
    by_group = float(((sums - sizes * value) ** 2).sum()) * units / (units - 1)
    by_sample = float(((gains - value) ** 2).sum()) * n / (n - 1)
    total = max(by_group, by_sample) / n**2
    parts = [_SeedVariance.of(side, groups) for side in sides]
    differing = any(part.source.variance > 0 for part in parts)
    counted = sum(part.residual for part in parts) if differing else 0.0
    samples = Source(variance=max(0.0, total - counted), df=units - 1)
    return Estimate(value=value, samples=samples, units=len(groups), seeds=tuple(part.source for part in parts))


def score_bounds(scores: Array, groups: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Return the Wilson bounds of the mean of scores (seeds, samples) in [0, 1]; ``None`` for fewer than two groups."""
    seeds, n = scores.shape
    if seeds == 1 and len(groups) == n > 1 and bool(((scores == 0) | (scores == 1)).all()):
        return wilson_bounds(float(scores.mean()), n, _quantile(math.inf, LEVEL))
    found = estimate(scores.mean(axis=0), groups, sides=[scores] if seeds > 1 else [])
    return found.wilson if found else None


def paired_difference(ours: Array, base: Array, groups: Sequence[Sequence[int]], *, paired: bool) -> Estimate | None:
    """Estimate the mean of ``ours`` less that of ``base``: scores (seeds, samples) in [0, 1] of the same samples.

    ``paired`` says that row by row their seeds are the same, too. ``None`` for fewer than two groups.
    """
    gains = ours.mean(axis=0) - base.mean(axis=0)
    together = paired or min(len(ours), len(base)) == 1
    sides = [side for side in ([ours - base] if together else [ours, base]) if len(side) > 1]
    # Two more samples, one won and one lost, of typical size (Bonett and Price 2012).
    differing = gains[gains != 0]
    prior = math.sqrt(float(np.mean(differing**2))) if differing.size else 1 / max(len(ours), len(base))
    return estimate(gains, groups, sides=sides, prior=prior) if len(groups) > 1 else None


def wilson_bounds(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score bounds of a share among ``n`` samples, which may be a fraction."""
    weight = quantile**2 / n
    centre = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def exact_bounds(count: int, n: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95% bounds of a rate, of ``count`` among ``n``."""
    from scipy.special import betaincinv

    tail = (1 - LEVEL) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    return low, float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of a family of tests by Holm's step-down method."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = largest
    return adjusted


@dataclass(frozen=True, kw_only=True)
class _SeedVariance:
    """The variance of a mean over seeds, and the part of it that chance within each seed explains."""

    source: Source
    residual: float

    @classmethod
    def of(cls, scores: Array, groups: Sequence[Sequence[int]]) -> _SeedVariance:
        """Analyse scores (seeds, samples)."""
        (seeds, count), units = scores.shape, len(groups)
        means = scores.mean(axis=1, keepdims=True)
        within = _sums(scores - means, groups)
        within = within - within.mean(axis=0)
        residual = float((within**2).sum()) * units / (max(units - 1, 1) * count**2 * seeds * (seeds - 1))
        return cls(source=Source(variance=float(means.var(ddof=1)) / seeds, df=seeds - 1), residual=residual)


def _sums(values: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Sum over the samples of each group, the last axis."""
    order = [place for group in groups for place in group]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values[..., order], starts, axis=-1)


@lru_cache(maxsize=1024)
def _quantile(df: float, level: float) -> float:
    """Return the quantile of Student's t for a level of confidence; the normal one for an infinite ``df``.

    Importing scipy takes longer than a short run. Newton's method approaches the quantile from the normal one, below
    it, because the tail is convex.
    """
    tail = (1 - level) / 2
    found = NormalDist().inv_cdf(1 - tail)
    if math.isinf(df):
        return found
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    for _ in range(_ITERATIONS):
        density = scale * (1 + found**2 / df) ** (-(df + 1) / 2)
        step = (_upper_tail(found, df, density) - tail) / density
        found += step
        if abs(step) < _PRECISION * found:
            break
    return found


def _upper_tail(t: float, df: float, density: float) -> float:
    """Return the probability above ``t`` > 0, whose ``density`` is known, by the incomplete beta function."""
    a, x = df / 2, df / (df + t**2)
    if x < (a + 1) / (a + 2.5):  # else the fraction of 1 - x converges faster
        return density * t / df * _beta_fraction(a, 0.5, x)
    return 0.5 - density * t * _beta_fraction(0.5, a, 1 - x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function from its front (DLMF 8.17.22)."""
    value = inverse = 1 / (1 - (a + b) * x / (a + 1))
    ratio = 1.0
    for m in range(1, _ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            inverse = 1 / (1 + term * inverse)
            ratio = 1 + term / ratio
            value *= inverse * ratio
        if abs(inverse * ratio - 1) < _PRECISION:
            break
    return value


def bootstrap_interval(
    items: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    seed: int,
    group: Callable[[T], str] = lambda _: "",
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Percentile bootstrap over ``items``; ``None`` for fewer than two sampling units.

    The items of one ``group`` are drawn together, since they depend on each other; an item without a group ("") is its
    own unit. The statistic must not use groups itself: it gets a group twice that is drawn twice.
    """
    units = clusters(items, group)
    if len(units) < 2:
        return None
    rng = random.Random(seed)
    values = sorted(statistic([*chain.from_iterable(rng.choices(units, k=len(units)))]) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    return values[int(tail * RESAMPLES)], values[int((1 - tail) * RESAMPLES) - 1]


def clusters(items: Iterable[T], group: Callable[[T], str]) -> list[list[T]]:
    """Group items, in order of first appearance; an item without a group ("") is a group of its own."""
    found: dict[str | int, list[T]] = {}
    for place, item in enumerate(items):
        found.setdefault(group(item) or place, []).append(item)
    return list(found.values())


def blocks(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Join n groups that follow each other to about the square root of n blocks, at least two."""
    parts = np.array_split(np.arange(len(groups)), min(len(groups), max(2, math.isqrt(len(groups)))))
    return [[place for index in part for place in groups[index]] for part in parts]
