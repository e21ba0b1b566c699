"""Intervals of a method's difference from a base, among which ours was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from ace_bench.core.statistics import Array, Variances

CHOSEN, SAMPLES_ONLY = "squares over seeds and samples (ours)", "random signs of samples"
_FLIPS, _HALVINGS = 999, 25
Interval = tuple[Array, Array]
"""Centres, and half the widths."""


def all_intervals(
    ours: Array,
    base: Array,
    groups: Sequence[Sequence[int]],
    parts: Variances,
    levels: Sequence[float],
    *,
    paired: bool,
) -> Mapping[str, list[Interval]]:
    """Return the intervals of all candidates, of scores (..., seeds, samples), at each level.

    In these balanced data the variances of ours are REML's, and averaged (Satterthwaite's) df are Kenward and Roger's.
    """
    value, samples, seeds, df = parts.value, parts.samples, parts.seeds, parts.seeds_df
    total = samples + seeds
    averaged = total**2 / (samples**2 / parts.df + seeds**2 / df)
    harmonic = total / (samples / parts.df + seeds / df)
    intervals: dict[str, list[Interval]] = {CHOSEN: [(parts.value, parts.reach(level)) for level in levels]}
    for name, middle, variance, freedom in (
        ("REML of both, averaged df", value, total, averaged),
        ("REML of both, harmonic df", value, total, harmonic),
        ("Paule-Mandel over seeds, Knapp-Hartung", *_random_effects(ours, base, groups, paired=paired)),
        ("t over seeds", value, seeds, df),
    ):
        intervals[name] = [(middle, np.sqrt(variance) * _quantile(freedom, level)) for level in levels]
    gains = ours.mean(axis=-2) - base.mean(axis=-2)
    intervals[SAMPLES_ONLY] = [(value, reach) for reach in _flipped(gains, groups, levels)]
    return intervals


def _welch(parts: Sequence[tuple[Array, int]]) -> Interval:
    total = np.asarray(sum(variance for variance, _ in parts))
    return total, np.asarray(total**2 / sum(variance**2 / df for variance, df in parts))


def _random_effects(
    ours: Array, base: Array, groups: Sequence[Sequence[int]], *, paired: bool
) -> tuple[Array, Array, Array]:
    """Return the centre, its variance and df, of seeds weighed by Paule and Mandel's variance between them.

    The variance is Knapp and Hartung's, at least that of fixed effects.
    """
    together = paired or min(ours.shape[-2], base.shape[-2]) == 1
    centre, parts = np.zeros(()), []
    for sign, side in [(1, ours - base)] if together else [(1, ours), (-1, base)]:
        means, within = side.mean(axis=-1), Variances.analyse(side, groups).samples
        low, high = np.zeros(means.shape[:-1]), np.ones(means.shape[:-1])
        for _ in range(_HALVINGS):
            between = (low + high) / 2
            enough = _weigh(means, within, between)[1] <= 1
            low, high = np.where(enough, low, between), np.where(enough, between, high)
        mean, scale, variance = _weigh(means, within, high)
        centre = centre + sign * mean
        parts.append((variance * np.maximum(scale, 1), means.shape[-1] - 1))
    return centre, *_welch(parts)


def _weigh(means: Array, within: Array, between: Array) -> tuple[Array, Array, Array]:
    """Return the weighted mean of seeds, Knapp and Hartung's factor, and the variance of fixed effects."""
    weights = 1 / (within + between[..., None])
    total = weights.sum(axis=-1)
    mean = (weights * means).sum(axis=-1) / total
    scale = (weights * (means - mean[..., None]) ** 2).sum(axis=-1) / (means.shape[-1] - 1)
    return mean, scale, 1 / total


def _flipped(gains: Array, groups: Sequence[Sequence[int]], levels: Sequence[float]) -> list[Array]:
    """Return the reach of a randomisation test that flips the signs of whole groups' centred gains."""
    size = len(groups[0])
    centred = (gains - gains.mean(axis=-1, keepdims=True)).reshape(*gains.shape[:-1], -1, size).sum(axis=-1)
    signs = np.random.default_rng(5).choice(np.array([-1, 1], dtype=np.float32), size=(centred.shape[-1], _FLIPS))
    places = [min(_FLIPS - 1, int(np.ceil(level * (_FLIPS + 1))) - 1) for level in levels]
    moved = np.partition(np.abs(centred.astype(np.float32) @ signs), places, axis=-1)
    return [moved[..., place].astype(float) / gains.shape[-1] for place in places]


def _quantile(df: Array | float, level: float) -> Array:
    return np.asarray(stdtrit(df, (1 + level) / 2))
