"""What a reviewer asks of a score: how far it may be off, and whether two differ by more than chance.

All over points by sample: a run is a mapping from sample id to its point. Runs that are set against each other, or are
repetitions of each other, must have attempted the same samples. Samples of one group depend on each other (AppWorld:
the tasks of a scenario), so everything here draws, flips and counts whole groups.
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
"""Sign flips drawn where they cannot be counted."""
_FINEST = 120
"""Flips are counted where all differences are multiples of a step of at least 1 in this many."""
_LONGEST = 100_000
"""Steps up to which sums are counted."""
_EQUAL = 1e-9

_Array = NDArray[np.float64]
_Counts = NDArray[np.int64]


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one sample brought: its score in [0, 1], and the group it is drawn with ("" is a group of its own)."""

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
    """Ours against a base on the same samples.

    ``difference`` is in percentage points; ``better`` and ``worse`` count samples whose mean over repetitions differs,
    and ``p`` is two-sided: by McNemar's exact test (``mcnemar``) where units differ by the same amount, otherwise by
    flipping signs of the differences by unit (``permutation``: over all flips where the differences are multiples of
    one step, as means of right and wrong are, otherwise over 10,000 drawn by seed).
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
        """Samples that the two score differently."""
        return self.better + self.worse

    def within_noise(self, alpha: float = 0.05) -> bool:
        """Whether chance alone gives such a difference more often than ``alpha``."""
        return self.p >= alpha


def mean_score(runs: Sequence[Points]) -> float:
    """Mean over samples and repetitions, in percent."""
    return 100.0 * float(_scores(runs).mean())


def score_interval(runs: Sequence[Points], *, seed: int = 0, level: float = 0.95) -> Interval | None:
    """Percentile bootstrap of ``mean_score`` over groups of samples and, where there are several, over repetitions.

    ``None`` for fewer than two groups. Two or three repetitions show less of their spread than there is.
    """
    return _interval(*_units(_scores(runs), runs[0]), seed=seed, level=level)


def compare(ours: Sequence[Points], base: Sequence[Points], *, seed: int = 0) -> Comparison:
    """Test whether ours and the base differ, sample by sample; raises ``DataError`` where the samples differ."""
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
    # Not `@`: for matrices of this size the threads of a BLAS cost more than they save.
    totals = np.einsum("ij,ij->i", np.einsum("ir,rj->ij", repeated, sums), drawn)
    means = 100.0 * totals / (runs * np.einsum("ij,j->i", drawn, sizes))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(low=float(low), high=float(high))


@lru_cache(maxsize=4)  # the cells of a table have their samples and seeds in common, and so their draws
def _draws(runs: int, units: int, seed: int) -> tuple[_Array, _Array]:
    """How often each resample holds each unit, and each run."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(units, size=(RESAMPLES, units))
    drawn = np.stack([np.bincount(pick, minlength=units) for pick in picked])
    repeated = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES)
    return drawn.astype(float), repeated.astype(float)


def _sign_test(differences: _Array, seed: int) -> tuple[float, str]:
    """Two-sided p-value that the differences are as likely to be of the other sign."""
    changed = differences[np.abs(differences) > _EQUAL]
    sizes = np.abs(changed)
    if changed.size == 0 or np.ptp(sizes) < _EQUAL:
        return _mcnemar(int((changed > 0).sum()), changed.size), "mcnemar"
    steps = _in_steps(sizes)
    if steps is not None:
        return _exact(steps, int(steps[changed > 0].sum())), "permutation"
    signs = 2.0 * np.random.default_rng(seed).integers(2, size=(_SIGNS, changed.size), dtype=np.int8) - 1.0
    extreme = int((np.abs(signs @ sizes) >= abs(float(changed.sum())) - _EQUAL).sum())
    # What was seen counts among the flips drawn, so that p is never 0.
    return (extreme + 1) / (_SIGNS + 1), "permutation"


def _in_steps(sizes: _Array) -> _Counts | None:
    """Sizes as multiples of a common step; ``None`` where they have none, or are too many steps."""
    for parts in range(1, _FINEST + 1):
        steps = np.rint(sizes * parts)
        if steps.min() >= 1 and np.abs(sizes * parts - steps).max() < 1e-7:
            return steps.astype(np.int64) if steps.sum() <= _LONGEST else None
    return None


def _exact(steps: _Counts, gained: int) -> float:
    """Share of all flips of signs whose sum is as far from 0 as the one seen, in which ``gained`` steps are plus."""
    chances = np.zeros(int(steps.sum()) + 1)
    chances[0] = 1.0
    for step in steps:  # of each sum of the steps that are plus
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
