"""Worlds in which intervals are known to be difficult: rare gains, databases, scores near 100%, collapses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ace_bench.core.statistics import Array, Variances, difference_variances
from tests.simulation.score_worlds import mean_at

DATABASES = (186, 163, 129, 64, 158, 106, 191, 145, 129, 174, 89)
"""Questions about each database in the tests of BIRD-SQL."""
PATHOLOGIES = 49
_SEVERAL, _WITHIN = ((1, 1), (3, 3), (5, 5), (5, 1)), float(np.hypot(1.4, 0.85))
"""Seeds of both sides, and the spread of a sample's log odds: of its difficulty, and of how a method fits it."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Scores (tables, seeds, samples) of both sides, the true difference, groups of samples, and if near 100%.

    With ``typical`` intervals are judged as they were once: the two added samples have the size of those that differ.
    """

    ours: Array
    base: Array
    truth: float
    groups: Sequence[Sequence[int]]
    near_end: bool = False
    typical: bool = False

    def covered(self) -> float:
        """Return the share of intervals that hold the truth."""
        paired = self.ours.shape[-2] == self.base.shape[-2]
        variances = self._with_typical() if self.typical else difference_variances(
            self.ours, self.base, self.groups, paired=paired
        )  # fmt: skip
        return float((np.abs(variances.value - self.truth) <= variances.reach() + 1e-12).mean())

    def _with_typical(self) -> Variances:
        seeds = (self.ours.shape[-2], self.base.shape[-2])
        together = len({*seeds}) == 1 or min(seeds) == 1
        sides = [side for side in ([self.ours - self.base] if together else [self.ours, self.base]) if max(seeds) > 1]
        gains = self.ours.mean(axis=-2) - self.base.mean(axis=-2)
        differing = np.count_nonzero(gains, axis=-1)
        size = np.sqrt((gains**2).sum(axis=-1) / np.maximum(differing, 1))
        prior = np.where(differing > 0, size, 1 / max(seeds))
        return Variances.analyse(gains, self.groups, sides=sides, prior=prior)

    def differing(self) -> float:
        """Return the median number of samples that differ."""
        return float(np.median(np.count_nonzero(self.ours.mean(axis=-2) - self.base.mean(axis=-2), axis=-1)))


def rare_gains(tables: int, *, typical: bool) -> Iterator[Drawn]:
    """Yield worlds in which 2 to 5% of samples gain for certain, 0 to 30% vary by chance, and the others never."""
    rng = np.random.default_rng(21)
    for (ours, base), n, luck, share in product(_SEVERAL, (40, 120, 400), (0.0, 0.05, 0.3), (0.02, 0.05)):
        kind, sure = rng.random((2, tables, 1, n))
        sides = []
        for seeds, gained in ((ours, 1.0), (base, 0.0)):
            varied = np.where(kind < share + luck, rng.random((tables, seeds, n)) < 0.5, sure < 0.5)
            sides.append(np.where(kind < share, gained, varied))
        yield Drawn(ours=sides[0], base=sides[1], truth=share, groups=_single(n), typical=typical)


def databases(tables: int, effect: float, *, grouped: bool) -> Iterator[Drawn]:
    """Yield worlds in which each method has its own effect, in log odds, on the questions of each database."""
    rng, sizes = np.random.default_rng(22), np.array(DATABASES)
    ends = np.cumsum(sizes)
    together = [[*range(end - size, end)] for end, size in zip(ends, sizes, strict=True)]
    groups = together if grouped else _single(int(ends[-1]))
    for ours, base in _SEVERAL:
        difficulty = 1.4 * rng.normal(size=(tables, 1, ends[-1]))
        sides = [
            _answers(0.3, difficulty + _fit(rng, difficulty) + own, seeds, 0.1 * (seeds > 1), rng)
            for seeds, own in ((ours, _by_database(rng, tables, effect)), (base, _by_database(rng, tables, effect)))
        ]
        yield Drawn(ours=sides[0], base=sides[1], truth=0.0, groups=groups)


def pathologies(tables: int, effect: float, *, grouped: bool) -> Iterator[Drawn]:
    """Yield worlds in which a method has an effect on each pathology, and the test set has all that there are."""
    rng, n = np.random.default_rng(23), 490
    own = effect * rng.normal(size=PATHOLOGIES)
    groups = [[*range(start, n, PATHOLOGIES)] for start in range(PATHOLOGIES)] if grouped else _single(n)
    for ours, base in _SEVERAL:
        difficulty = 1.4 * rng.normal(size=(tables, 1, n))
        sides = [
            _answers(0.3, difficulty + _fit(rng, difficulty) + effects, seeds, 0.0, rng)
            for seeds, effects in ((ours, np.resize(own, n)), (base, 0.0))
        ]
        truth = float(mean_at(0.3 + own, _WITHIN).mean() - mean_at(0.3, _WITHIN))
        yield Drawn(ours=sides[0], base=sides[1], truth=truth, groups=groups)


def near_the_end(tables: int, points: float) -> Iterator[Drawn]:
    """Yield worlds in which seeds vary by ``points`` around 90 and 95%, and the base does not adapt."""
    rng, standard, n = np.random.default_rng(24), np.random.default_rng(0).normal(size=4_000), 400

    def level(mean: float, spread: float) -> float:
        return float(brentq(lambda odds: float(mean_at(odds, float(np.hypot(_WITHIN, spread)))) - mean, -12, 12))

    def excess(spread: float, mean: float) -> float:
        return 100 * float(np.std(mean_at(level(mean, spread) + spread * standard, _WITHIN))) - points

    for seeds, mean in product((3, 5), (0.9, 0.95)):
        spread = float(brentq(excess, 0.01, 6, args=(mean,), xtol=0.02))
        difficulty = 1.4 * rng.normal(size=(tables, 1, n))
        ours = _answers(level(mean, spread), difficulty + _fit(rng, difficulty), seeds, spread, rng)
        base = _answers(level(mean - 0.02, 0.0), difficulty + _fit(rng, difficulty), 1, 0.0, rng)
        yield Drawn(ours=ours, base=base, truth=0.02, groups=_single(n), near_end=True)


def supported_without_effect(tables: int) -> Iterator[float]:
    """Yield how often a difference is found above 0 though there is none, and collapsed runs count as the base's best.

    A test with two sides at 5% finds 2.5%.
    """
    rng = np.random.default_rng(25)
    for n, seeds, spread in product((60, 200), (3, 5), (0.1, 0.25)):
        for collapsed in range(1, seeds - 1):
            difficulty = 1.4 * rng.normal(size=(tables, 1, n))
            ours, base = (_answers(0.3, difficulty + _fit(rng, difficulty), seeds, spread, rng) for _ in range(2))
            best = base[:, collapsed:].mean(axis=-1).argmax(axis=-1) + collapsed
            base[:, :collapsed] = base[np.arange(tables), best][:, None]
            variances = difference_variances(ours, base, _single(n), paired=True)
            yield float((variances.value > variances.reach()).mean())


def _answers(level: float, odds: Array, seeds: int, spread: float, rng: np.random.Generator) -> Array:
    quality = level + spread * rng.normal(size=(len(odds), seeds, 1))
    shape = (len(odds), seeds, odds.shape[-1])
    return np.asarray(rng.random(shape) < expit(quality + odds), dtype=float)


def _fit(rng: np.random.Generator, odds: Array) -> Array:
    return 0.85 * rng.normal(size=odds.shape)


def _by_database(rng: np.random.Generator, tables: int, effect: float) -> Array:
    return np.repeat(effect * rng.normal(size=(tables, 1, len(DATABASES))), DATABASES, axis=-1)


def _single(n: int) -> list[list[int]]:
    return [[index] for index in range(n)]
