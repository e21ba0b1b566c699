"""Means over seeds and samples: intervals and tests, ours because scipy has none for both, or for groups of samples.

docs/tables-and-figures.md explains the methods and gives their measured coverage.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from statistics import NormalDist
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[np.float64]

RESAMPLES = 1_000
LEVEL, POWER = 0.95, 0.8
"""Confidence of intervals, and the power at which the smallest detectable difference is found."""
_SMALLEST_P, _HALVINGS = 1e-12, 40
"""No test is certain."""
_ROUNDING = 1e-24
"""Largest variance that the rounding of equal means of scores makes."""
_PRECISION, _ITERATIONS, _PARTS = 1e-12, 100, 2000
"""Relative precision of quantiles, most iterations, and parts of the integral."""
_LARGE_DF = 1e5
"""From here on the series of the gamma function is as exact."""
_WHOLE = 2
"""How many samples with a whole point of gain count as seen before any is."""


@lru_cache(maxsize=1024)
def t_quantile(df: float, level: float) -> float:
    """Return the two-sided quantile of Student's t for a level of up to 0.99; the normal one for an infinite ``df``.

    Newton's method approaches it from the normal one. The substitution x = sqrt(df) tan(angle) makes the integral of
    the density one over a power of the cosine. It is ours because a run needs it, and
    importing scipy takes 0.15 s of CPU time.
    """
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    if math.isinf(df):
        return quantile
    gammas = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) if df < _LARGE_DF else math.sqrt(df / 2 - 0.25)
    places = np.linspace(0, 1, _PARTS + 1)
    weights = np.where(np.arange(_PARTS + 1) % 2, 4, 2) / (3 * _PARTS)  # Simpson's rule
    weights[[0, -1]] /= 2
    for _ in range(_ITERATIONS):
        angle = math.atan(quantile / math.sqrt(df))
        inside = 2 * angle * gammas / math.sqrt(math.pi) * float(weights @ np.cos(angle * places) ** (df - 1))
        density = gammas / math.sqrt(df * math.pi) * (1 + quantile**2 / df) ** (-(df + 1) / 2)
        step = (level - inside) / (2 * density)
        quantile += step
        if abs(step) < _PRECISION * quantile:
            break
    return quantile


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source of chance: the variance that it gives a mean, and the degrees of freedom of that variance."""

    variance: float
    df: float


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean, and the sources of its error: the samples, and the seeds where a side has several.

    ``units`` is the number of independent groups of samples.
    """

    value: float
    samples: Source
    units: int
    seeds: Source = Source(variance=0.0, df=1.0)

    @property
    def variance(self) -> float:
        """Variance of the mean."""
        return self.samples.variance + self.seeds.variance

    def margin(self, level: float = LEVEL) -> float:
        """Half the width of the interval: the root of the sum of the squared reaches over each source.

        So it is never narrower than the t interval over seeds, or that over samples, alone (Zou and Donner 2008).
        """
        return math.sqrt(sum(part.variance * t_quantile(part.df, level) ** 2 for part in (self.samples, self.seeds)))

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """Bounds of the interval."""
        return self.value - self.margin(level), self.value + self.margin(level)

    @property
    def wilson(self) -> tuple[float, float]:
        """Bounds for a mean of scores in [0, 1]: Wilson's, with the number of samples that has this variance.

        Where the variance is 0, the number of units takes its place (Korn and Graubard 1998).
        """
        spread, variance = self.value * (1 - self.value), self.variance
        if variance <= 0 or spread <= 0:
            return wilson_bounds(self.value, self.units, t_quantile(self.samples.df, LEVEL))
        return wilson_bounds(self.value, spread / variance, self.margin() / math.sqrt(variance))

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the mean is 0: an interval of level 1 - p ends there."""
        from scipy.special import stdtrit

        if self.variance <= 0:
            return float(self.value == 0)
        low, high = math.log(_SMALLEST_P), 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            tail = math.exp(middle) / 2
            square = sum(part.variance * stdtrit(part.df, tail) ** 2 for part in (self.samples, self.seeds))
            low, high = (middle, high) if square > self.value**2 else (low, middle)
        return math.exp(high)

    @property
    def seeds_p(self) -> float | None:
        """Two-sided p-value of the t test over seeds, for fixed samples; ``None`` if the seeds' means are equal."""
        from scipy.special import stdtr

        if self.seeds.variance < _ROUNDING:
            return None
        tail = stdtr(self.seeds.df, -abs(self.value) / math.sqrt(self.seeds.variance))
        return max(float(2 * tail), _SMALLEST_P)

    @property
    def detectable(self) -> float | None:
        """About the mean that a two-sided test at the 5% level finds with a power of 80%; ``None`` if nothing varies.

        The degrees of freedom are the harmonic mean of the sources' degrees, weighted by their variances.
        """
        from scipy.special import nctdtrinc

        variance = self.variance
        if variance <= 0:
            return None
        df = variance / (self.samples.variance / self.samples.df + self.seeds.variance / self.seeds.df)
        return float(nctdtrinc(df, 1 - POWER, self.margin() / math.sqrt(variance))) * math.sqrt(variance)


def score_bounds(scores: Array, groups: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Return the Wilson bounds of the mean of scores (seeds, samples) in [0, 1]; ``None`` for fewer than two groups."""
    seeds, n = scores.shape
    if seeds == 1 and len(groups) == n > 1 and bool(((scores == 0) | (scores == 1)).all()):
        return wilson_bounds(float(scores.mean()), n, t_quantile(math.inf, LEVEL))
    if len(groups) < 2:
        return None
    return Variances.analyse(scores.mean(axis=0), groups, sides=[scores] if seeds > 1 else []).estimate().wilson


def paired_difference(ours: Array, base: Array, groups: Sequence[Sequence[int]], *, paired: bool) -> Estimate | None:
    """Estimate the mean of ``ours`` less the mean of ``base``: scores (seeds, samples) in [0, 1] of the same samples.

    ``paired`` means that their rows also have the same seeds. ``None`` for fewer than two groups.
    """
    return difference_variances(ours, base, groups, paired=paired).estimate() if len(groups) > 1 else None


def difference_variances(ours: Array, base: Array, groups: Sequence[Sequence[int]], *, paired: bool) -> Variances:
    """Analyse differences as ``paired_difference`` does, of scores that may have more axes in front."""
    gains = ours.mean(axis=-2) - base.mean(axis=-2)
    is_paired = paired or min(ours.shape[-2], base.shape[-2]) == 1
    sides = [side for side in ([ours - base] if is_paired else [ours, base]) if side.shape[-2] > 1]
    # Two more samples, one won and one lost (Bonett and Price 2012). They are whole where no sample differs, and
    # approach the typical gain with each that does: more seeds with the same results do not make them smaller.
    differing = np.count_nonzero(gains, axis=-1)
    prior = np.sqrt((_WHOLE + (gains**2).sum(axis=-1)) / (_WHOLE + differing))
    return Variances.analyse(gains, groups, sides=sides, prior=prior)


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
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted


class Variances(msgspec.Struct, frozen=True, kw_only=True):
    """Means of gains and their variances from samples and seeds. Leading axes of the arrays hold several comparisons.

    Two sides' variances from seeds are added, with Welch's degrees of freedom.
    """

    value: Array
    samples: Array
    df: int
    units: int
    seeds: Array
    seeds_df: Array

    @classmethod
    def analyse(
        cls, gains: Array, groups: Sequence[Sequence[int]], *, sides: Sequence[Array] = (), prior: Array | None = None
    ) -> Variances:
        """Analyse ``gains``, means over the seeds of ``sides`` (..., seeds, samples) with at least two seeds each.

        ``prior`` adds two samples, one with this gain and one with its negative.

        The model has crossed random effects. The variance of samples is at least as large as if samples of one
        group were independent; where all seeds have one mean, it is the variance of the averaged gains.
        """
        sums, sizes = _sums(gains, groups), np.array([len(group) for group in groups], dtype=float)
        if prior is not None:
            two = np.stack([prior, -prior], axis=-1)
            gains, sums = (np.concatenate([values, two], axis=-1) for values in (gains, sums))
            sizes = np.append(sizes, [1.0, 1.0])
        units, n = len(sizes), gains.shape[-1]
        value = gains.mean(axis=-1)
        by_group = ((sums - sizes * value[..., None]) ** 2).sum(axis=-1) * units / (units - 1)
        by_sample = ((gains - value[..., None]) ** 2).sum(axis=-1) * n / (n - 1)
        total = np.maximum(by_group, by_sample) / n**2
        parts = [_seed_variances(side, groups) for side in sides]
        seeds = sum(variance for variance, _ in parts)
        counted = np.where(seeds > 0, sum(residual for _, residual in parts), 0.0)
        inverse = sum(variance**2 / (side.shape[-2] - 1) for (variance, _), side in zip(parts, sides, strict=True))
        return cls(
            value=value, samples=np.maximum(0.0, total - counted), df=units - 1, units=len(groups),
            seeds=np.asarray(seeds),
            seeds_df=np.where(seeds > 0, seeds**2 / np.maximum(inverse, np.finfo(float).tiny), 1.0),
        )  # fmt: skip

    def reach(self, level: float = LEVEL) -> Array:
        """Return half the widths of the intervals, as ``Estimate.margin`` does for one."""
        from scipy.special import stdtrit

        over_samples, over_seeds = (stdtrit(df, (1 + level) / 2) for df in (self.df, self.seeds_df))
        return np.asarray(np.sqrt(self.samples * over_samples**2 + self.seeds * over_seeds**2))

    def estimate(self) -> Estimate:
        """Return the estimate of a single mean."""
        return Estimate(
            value=float(self.value), samples=Source(variance=float(self.samples), df=self.df), units=self.units,
            seeds=Source(variance=float(self.seeds), df=float(self.seeds_df)),
        )  # fmt: skip


def _seed_variances(scores: Array, groups: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Return the variance of a mean over seeds, and the part of it that chance within each seed explains."""
    (seeds, count), units = scores.shape[-2:], len(groups)
    means = scores.mean(axis=-1, keepdims=True)
    within = _sums(scores - means, groups)
    within = within - within.mean(axis=-2, keepdims=True)
    residual = (within**2).sum(axis=(-2, -1)) * units / (max(units - 1, 1) * count**2 * seeds * (seeds - 1))
    return means[..., 0].var(axis=-1, ddof=1) / seeds, residual


def _sums(values: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Sum over the samples of each group, the last axis."""
    order = [index for group in groups for index in group]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values[..., order], starts, axis=-1)


def bootstrap_interval(
    items: Sequence[T], statistic: Callable[[Sequence[T]], float], *, group: Callable[[T], str] = lambda _: ""
) -> tuple[float, float] | None:
    """95% percentile bootstrap over ``items``; ``None`` for fewer than two sampling units.

    The items of one ``group`` are drawn together, since they depend on each other; an item without a group ("") is its
    own unit. The statistic must not use groups itself: it gets a group twice that is drawn twice.
    """
    units = clusters(items, group)
    if len(units) < 2:
        return None
    rng = random.Random(0)
    values = sorted(statistic([*chain.from_iterable(rng.choices(units, k=len(units)))]) for _ in range(RESAMPLES))
    tail = (1 - LEVEL) / 2
    return values[int(tail * RESAMPLES)], values[int((1 - tail) * RESAMPLES) - 1]


def clusters(items: Iterable[T], group: Callable[[T], str]) -> list[list[T]]:
    """Group items, in order of first appearance; an item without a group ("") is a group of its own."""
    members: dict[str | int, list[T]] = {}
    for index, item in enumerate(items):
        members.setdefault(group(item) or index, []).append(item)
    return list(members.values())


def blocks(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Join groups that follow each other to blocks, at least two, and about the square root of the samples at most."""
    most = max(2, math.isqrt(sum(map(len, groups))))
    parts = np.array_split(np.arange(len(groups)), min(len(groups), most))
    return [[member for index in part for member in groups[index]] for part in parts]
