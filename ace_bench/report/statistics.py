"""Confidence intervals of scores, and paired tests between runs.

A run is a mapping from sample id to its point. Runs that are compared, and repetitions of one run, must have the same
samples. Samples of one group depend on each other (AppWorld: the tasks of a scenario), so groups are resampled, flipped
and counted as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from ace_bench.core.errors import DataError
from ace_bench.core.statistics import RESAMPLES, clusters

_SIGNS = 10_000
"""Number of sign flips drawn if an exact test is not possible."""
_FINEST = 120
"""The test is exact if all differences are multiples of 1/n, for an n up to this."""
_LONGEST = 100_000
"""Maximum sum of steps for an exact test."""
_EQUAL = 1e-9

_Array = NDArray[np.float64]
_Counts = NDArray[np.int64]


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The score of one sample in [0, 1], and the group it belongs to ("": the sample is its own group)."""

    score: float
    group: str = ""


Points = Mapping[str, Point]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Percentile bounds, in percent."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference between a run and a base run on the same samples.

    ``difference`` is in percentage points; ``better`` and ``worse`` count samples whose mean over repetitions differs,
    and ``p`` is two-sided: McNemar's exact test (``mcnemar``) if all differences have the same size, otherwise a
    sign-flip test over groups (``permutation``: exact if the differences are multiples of one step, such as means of
    right and wrong, otherwise with 10,000 random flips).
    """

    n: int
    difference: float
    interval: Interval | None
    better: int
    worse: int
    p: float
    test: str

    @property
    def discordant(self) -> int:
        """Number of samples with different scores."""
        return self.better + self.worse

    def within_noise(self, alpha: float = 0.05) -> bool:
        """Whether the difference is not significant at the level ``alpha``."""
        return self.p >= alpha


def mean_score(runs: Sequence[Points]) -> float:
    """Mean over samples and repetitions, in percent."""
    return 100.0 * float(_scores(runs).mean())


def score_interval(runs: Sequence[Points], *, seed: int = 0, level: float = 0.95) -> Interval | None:
    """Percentile bootstrap of ``mean_score`` over groups of samples and, where there are several, over repetitions.

    ``None`` for fewer than two groups. Two or three repetitions understate the variance between repetitions.
    """
    return _interval(*_units(_scores(runs), runs[0]), seed=seed, level=level)


def compare(ours: Sequence[Points], base: Sequence[Points], *, seed: int = 0) -> Comparison:
    """Compare with a base by a paired test; raises ``DataError`` if the samples differ."""
    both = _scores([*ours, *base])
    gains = both[: len(ours)].mean(axis=0) - both[len(ours) :].mean(axis=0)
    sums, sizes = _units(gains[np.newaxis], ours[0])
    p, test = _sign_test(sums[0], seed)
    return Comparison(
        n=gains.size,
        difference=100.0 * float(gains.mean()),
        interval=_interval(sums, sizes, seed=seed, level=0.95),
        better=int((gains > _EQUAL).sum()),
        worse=int((gains < -_EQUAL).sum()),
        p=p,
        test=test,
    )


def _scores(runs: Sequence[Points]) -> _Array:
    """Scores by run and sample, samples in the order of the first run."""
    if not runs or not runs[0]:
        raise DataError("there are no scores to compare; choose runs that evaluated at least one sample")
    samples = runs[0]
    for run in runs[1:]:
        if run.keys() != samples.keys():
            odd = min(run.keys() ^ samples.keys())
            raise DataError(f"runs attempted different samples ({odd} is missing in one); compare runs of one limit")
    return np.array([[run[sample].score for sample in samples] for run in runs])


def _units(scores: _Array, points: Points) -> tuple[_Array, _Array]:
    """Sums of scores by run and group, and the sizes of the groups."""
    names = list(points)
    groups = clusters(range(len(names)), lambda place: points[names[place]].group)
    sums = np.stack([scores[:, group].sum(axis=1) for group in groups], axis=1)
    return sums, np.array([len(group) for group in groups], dtype=float)


def _interval(sums: _Array, sizes: _Array, *, seed: int, level: float) -> Interval | None:
    runs, units = sums.shape
    if units < 2:
        return None
    drawn, repeated = _draws(runs, units, seed)
    # Not `@`: for matrices of this size BLAS threads cost more than they save.
    totals = np.einsum("ij,ij->i", np.einsum("ir,rj->ij", repeated, sums), drawn)
    means = 100.0 * totals / (runs * np.einsum("ij,j->i", drawn, sizes))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(low=float(low), high=float(high))


@lru_cache(maxsize=4)  # the cells of a table share samples and seeds, and so the draws
def _draws(runs: int, units: int, seed: int) -> tuple[_Array, _Array]:
    """Return how often each resample contains each unit, and each run."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(units, size=(RESAMPLES, units))
    drawn = np.stack([np.bincount(pick, minlength=units) for pick in picked])
    repeated = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES)
    return drawn.astype(float), repeated.astype(float)


def _sign_test(differences: _Array, seed: int) -> tuple[float, str]:
    """Return the two-sided p-value of the hypothesis that both signs are equally likely, and the name of the test."""
    changed = differences[np.abs(differences) > _EQUAL]
    sizes = np.abs(changed)
    if changed.size == 0 or np.ptp(sizes) < _EQUAL:
        return _mcnemar(int((changed > 0).sum()), changed.size), "mcnemar"
    steps = _in_steps(sizes)
    if steps is not None:
        return _exact(steps, int(steps[changed > 0].sum())), "permutation"
    signs = 2.0 * np.random.default_rng(seed).integers(2, size=(_SIGNS, changed.size), dtype=np.int8) - 1.0
    extreme = int((np.abs(signs @ sizes) >= abs(float(changed.sum())) - _EQUAL).sum())
    # The observed sum counts as one of the draws, so that p is never 0.
    return (extreme + 1) / (_SIGNS + 1), "permutation"


def _in_steps(sizes: _Array) -> _Counts | None:
    """Return sizes as multiples of a common step; ``None`` if there is none, or the sum is too large."""
    for parts in range(1, _FINEST + 1):
        steps = np.rint(sizes * parts)
        if steps.min() >= 1 and np.abs(sizes * parts - steps).max() < 1e-7:
            return steps.astype(np.int64) if steps.sum() <= _LONGEST else None
    return None


def _exact(steps: _Counts, gained: int) -> float:
    """Return the share of all sign flips whose sum is at least as far from 0 as the observed one."""
    chances = np.zeros(int(steps.sum()) + 1)
    chances[0] = 1.0
    for step in steps:  # distribution of the sum of positive steps
        chances[step:] += chances[:-step]
        chances /= 2
    middle = (chances.size - 1) / 2
    extreme = np.abs(np.arange(chances.size) - middle) >= abs(gained - middle)
    return float(np.clip(chances[extreme].sum(), np.finfo(float).tiny, 1.0))


def _mcnemar(better: int, discordant: int) -> float:
    """Two-sided exact binomial test of ``better`` among ``discordant`` at even odds."""
    tail = sum(math.comb(discordant, k) for k in range(min(better, discordant - better) + 1))
    p: float = 2 * tail / 2**discordant
    return min(1.0, p)
