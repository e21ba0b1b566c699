"""Means over seeds and samples: intervals, tests and the smallest detectable difference.

docs/tables-and-figures.md explains the methods and gives their measured coverage.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean, the variance of its error, and the degrees of freedom of that variance.

    ``df`` is infinite if the variance follows from the mean, as for right and wrong. ``units`` is the number of
    independent groups of samples. ``seeds`` and ``seeds_df`` are the variance of the mean over seeds, for fixed
    samples; 0 with one seed.
    """

    value: float
    variance: float
    df: float
    units: int
    seeds: float = 0.0
    seeds_df: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the t interval."""
        reach = _quantile(self.df) * math.sqrt(self.variance)
        return self.value - reach, self.value + reach

    @property
    def wilson(self) -> tuple[float, float]:
        """Bounds for a mean of scores in [0, 1]: Wilson's, with the number of samples that has this variance.

        At 0 and 1 the variance is 0, and the number of units takes its place (Korn and Graubard 1998).
        """
        spread = self.value * (1 - self.value)
        if spread > 0 and self.variance <= 0:
            return self.value, self.value
        return wilson_bounds(self.value, spread / self.variance if spread > 0 else self.units, _quantile(self.df))

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the mean is 0."""
        return _t_test(self.value, self.variance, self.df)

    @property
    def seeds_p(self) -> float | None:
        """Two-sided p-value of the t test over seeds, for fixed samples; ``None`` if the seeds' means are equal."""
        return _t_test(self.value, self.seeds, self.seeds_df) if self.seeds > 0 else None

    @property
    def detectable(self) -> float | None:
        """The mean that a two-sided t test at the 5% level finds with a power of 80%; ``None`` if nothing varies."""
        from scipy.special import nctdtrinc

        if self.variance <= 0:
            return None
        return float(nctdtrinc(self.df, 1 - POWER, _quantile(self.df))) * math.sqrt(self.variance)


def estimate(
    gains: Array, groups: Sequence[Sequence[int]], *, sides: Sequence[Array] = (), prior: float = 0.0
) -> Estimate | None:
    """Estimate the mean of ``gains``, by sample; ``None`` for fewer than two groups of samples.

    Where gains are means over seeds, ``sides`` are the scores (seeds, samples) that were averaged, each of at least two
    seeds. ``prior`` adds two samples, one with this gain and one with its negative.

    The variance is that of crossed random effects, with a sample component of at least 0. The degrees of freedom are
    the harmonic mean of those of the components, weighted by their shares of the variance.
    """
    sums, sizes = _sums(gains, groups), np.array([len(group) for group in groups], dtype=float)
    if prior:
        sums, sizes = np.append(sums, [prior, -prior]), np.append(sizes, [1.0, 1.0])
    units = len(sums)
    if units < 2:
        return None
    value = float(sums.sum() / sizes.sum())
    by_sample = float(((sums - sizes * value) ** 2).sum()) * units / (units - 1) / float(sizes.sum()) ** 2
    parts = [_SeedVariance.of(side, groups) for side in sides]
    seeds = sum(part.variance for part in parts)
    samples = max(0.0, by_sample - sum(part.residual for part in parts))
    variance = seeds + samples
    if seeds == 0 or variance == 0:  # one seed, or seeds with equal means
        return Estimate(value=value, variance=by_sample, df=units - 1, units=len(groups))
    seeds_df = seeds**2 / sum(part.variance**2 / part.df for part in parts)
    df = variance / (seeds / seeds_df + samples / (units - 1))
    return Estimate(value=value, variance=variance, df=df, units=len(groups), seeds=seeds, seeds_df=seeds_df)


def score_bounds(scores: Array, groups: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Return the Wilson bounds of the mean of scores (seeds, samples) in [0, 1]; ``None`` for fewer than two groups."""
    seeds, n = scores.shape
    if seeds == 1 and len(groups) == n > 1 and right_or_wrong(scores):
        share = float(scores.mean())
        return Estimate(value=share, variance=share * (1 - share) / n, df=math.inf, units=n).wilson
    found = estimate(scores.mean(axis=0), groups, sides=[scores] if seeds > 1 else [])
    return found.wilson if found else None


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A difference, and its p-value; ``exact`` if that is McNemar's, otherwise it belongs to the estimate."""

    estimate: Estimate | None
    p: float
    exact: bool
    repeated: bool


def paired_test(ours: Array, base: Array, groups: Sequence[Sequence[int]], *, paired: bool) -> PairedTest:
    """Test the mean of ``ours`` against that of ``base``: scores (seeds, samples) in [0, 1] of the same samples.

    ``paired`` says that row by row their seeds are the same, too. ``repeated`` of the result is whether any side has
    several seeds. ``estimate`` is ``None`` for fewer than two groups.
    """
    gains = ours.mean(axis=0) - base.mean(axis=0)
    one_sided = paired or min(len(ours), len(base)) == 1
    sides = [side for side in ([ours - base] if one_sided else [ours, base]) if len(side) > 1]
    discrete = right_or_wrong(ours) and right_or_wrong(base)
    # Two more samples, one won and one lost by a single seed (Bonett and Price 2012); of typical size if graded.
    prior = 1 / max(len(ours), len(base)) if discrete else math.sqrt(float(np.mean(gains**2)))
    found = estimate(gains, groups, sides=sides, prior=prior) if len(groups) > 1 else None
    exact = discrete and not sides and len(groups) == gains.size
    p = found.p if found else 1.0
    if exact:
        p = mcnemar(int((gains > 0).sum()), int((gains < 0).sum()))
    return PairedTest(estimate=found, p=p, exact=exact, repeated=bool(sides))


def right_or_wrong(scores: Array) -> bool:
    """Whether no score is graded."""
    return bool(((scores == 0) | (scores == 1)).all())


def wilson_bounds(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score bounds of a share among ``n`` samples, which may be a fraction."""
    weight = quantile**2 / n
    centre = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def mcnemar(better: int, worse: int) -> float:
    """Two-sided p-value of McNemar's exact test: the binomial test of ``better`` among all pairs that differ."""
    from scipy.special import bdtr

    return float(min(1.0, 2 * bdtr(min(better, worse), better + worse, 0.5))) if better + worse else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of a family of tests by Holm's step-down method."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = largest
    return adjusted


@dataclass(frozen=True, kw_only=True)
class _SeedVariance:
    """Variance of a mean over seeds, its degrees of freedom, and the part that chance within each seed explains."""

    variance: float
    df: int
    residual: float

    @classmethod
    def of(cls, scores: Array, groups: Sequence[Sequence[int]]) -> _SeedVariance:
        """Analyse scores (seeds, samples)."""
        (seeds, count), units = scores.shape, len(groups)
        means = scores.mean(axis=1, keepdims=True)
        within = _sums(scores - means, groups)
        within = within - within.mean(axis=0)
        residual = float((within**2).sum()) * units / (max(units - 1, 1) * count**2 * seeds * (seeds - 1))
        return cls(variance=float(means.var(ddof=1)) / seeds, df=seeds - 1, residual=residual)


def _sums(values: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Sum over the samples of each group, the last axis."""
    order = [place for group in groups for place in group]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values[..., order], starts, axis=-1)


def _quantile(df: float) -> float:
    """Return the quantile of Student's t for ``LEVEL``; the normal one for an infinite ``df``.

    Importing scipy takes longer than a short run. Newton's method approaches the quantile from the normal one, below
    it, because the tail is convex.
    """
    tail = (1 - LEVEL) / 2
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


def _t_test(value: float, variance: float, df: float) -> float:
    from scipy.special import stdtr

    if variance <= 0:
        return float(value == 0)
    # The smallest positive number instead of 0: no test is certain.
    return max(float(2 * stdtr(df, -abs(value) / math.sqrt(variance))), float(np.finfo(float).tiny))


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
