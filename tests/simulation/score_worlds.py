"""Simulated scores with known truth, on which intervals and tests are measured.

A sample is right with log odds that add the difficulty of its group and its own, the quality of the seed's playbook,
and how playbook and sample fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from ace_bench.core.statistics import Array

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_BASE, _OWN, _FIT, _LUCK = 0.3, 1.4, 0.7, 0.5
"""Log odds of the base (right in 55 to 57%), and the spread of those of a sample, of its fit, and of one answer."""
_WITHIN = float(np.sqrt(_OWN**2 + _FIT**2 + _LUCK**2))
_USUAL = 8_000
"""Playbooks whose mean score decides how good ours are."""
COLLAPSE = 2.0
"""Log odds that a collapse costs: about 35 points."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What simulated tables compare: ``methods`` of ``ours`` seeds each with one base of ``base`` seeds.

    ``spreads`` are the standard deviations over seeds of ours and the base, in points; a base of one seed does not
    adapt. ``graded`` scores are shares of four questions. ``stream`` is how much a playbook gains along a stream, in
    log odds; it also wanders. A seed of ours collapses with the probability ``collapse``.
    """

    ours: int
    base: int = 1
    methods: int = 1
    n: int = 200
    group: int = 1
    graded: bool = False
    gain: float = 0.08
    spreads: tuple[float, float] = (0.0, 0.0)
    stream: float = 0.0
    collapse: float = 0.0

    @property
    def groups(self) -> list[list[int]]:
        """The places of the samples of each group."""
        return [[*range(start, start + self.group)] for start in range(0, self.n, self.group)]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of ours (tables, methods, seeds, samples) and of the base (tables, seeds, samples), and the true gain.

    ``own_truth`` is that of the playbooks that were drawn; ``orders`` are places in streams.
    """

    ours: Array
    base: Array
    truth: float
    own_truth: Array
    collapsed: NDArray[np.bool_]
    orders: NDArray[np.int64] | None = None


def mean_at(log_odds: Array | float, spread: float = _WITHIN) -> Array:
    """Return the mean score where log odds are normal with this mean and standard deviation."""
    return np.asarray(expit(np.add.outer(np.asarray(log_odds), spread * _NODES)) @ (_WEIGHTS / _WEIGHTS.sum()))


_GRID = np.linspace(-9, 9, 2_000)
_GRID_MEANS = mean_at(_GRID)


def draw(case: Case, tables: int, rng: np.random.Generator) -> Scores:
    """Draw tables."""
    ours, base = _log_odds(case)
    shape = (tables, case.methods, case.ours, 1)
    collapsed = rng.random(shape) < case.collapse
    quality = _level(case) + ours * rng.normal(size=shape) - COLLAPSE * collapsed
    orders = None
    if case.stream:
        orders = np.argsort(rng.random((*shape[:3], case.n)), axis=3)
        quality = quality + np.take_along_axis(_paths(case, shape[:3], case.n, rng), orders, axis=3)
    base_quality = _BASE + base * rng.normal(size=(tables, case.base, 1))
    difference = _mean_near(quality).mean(axis=(2, 3)) - _mean_near(base_quality).mean(axis=(1, 2))[:, None]
    difficulty = _OWN * _by_group(case, (tables,), rng)
    fit = _FIT * _by_group(case, (tables, case.methods), rng)
    odds = quality.astype(np.float32) + (difficulty[:, None] + fit)[:, :, None]
    base_odds = base_quality.astype(np.float32) + (difficulty + _FIT * _by_group(case, (tables,), rng))[:, None]
    return Scores(
        ours=_answers(case, odds, rng), base=_answers(case, base_odds, rng), truth=case.gain, own_truth=difference,
        collapsed=collapsed[..., 0], orders=orders,
    )  # fmt: skip


@lru_cache
def _level(case: Case) -> float:
    """Return the log odds of ours at which the true gain is that of the case."""
    (ours, base), rng = _log_odds(case), np.random.default_rng(1)
    aim = float(mean_at(_BASE, float(np.hypot(_WITHIN, base)))) + case.gain
    if case.stream:
        usual = ours * rng.normal(size=_USUAL)
        usual = (
            usual + np.take_along_axis(_paths(case, (_USUAL,), 60, rng), rng.integers(60, size=(_USUAL, 1)), 1)[:, 0]
        )
        return float(brentq(lambda x: float(_mean_near(x + usual).mean()) - aim, -6, 6))
    return float(brentq(lambda x: float(mean_at(x, float(np.hypot(_WITHIN, ours)))) - aim, -6, 6))


def _log_odds(case: Case) -> tuple[float, float]:
    """Return the spreads over seeds in log odds."""
    slope = float(mean_at(_BASE + 0.05) - mean_at(_BASE - 0.05)) / 0.1
    ours, base = (points / 100 / slope for points in case.spreads)
    return ours, base if case.base > 1 else 0.0


def _mean_near(log_odds: Array) -> Array:
    return np.interp(log_odds, _GRID, _GRID_MEANS)


def _answers(case: Case, odds: NDArray[np.float32], rng: np.random.Generator) -> Array:
    chance = expit(odds + np.float32(_LUCK) * rng.standard_normal(odds.shape, dtype=np.float32))
    questions = 4 if case.graded else 1
    right = sum((rng.random(odds.shape, dtype=np.float32) < chance).astype(np.float64) for _ in range(questions))
    return np.asarray(right / questions)


def _by_group(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return standard normal numbers by sample, half of whose variance is that of their group."""
    alone = rng.standard_normal((*shape, case.n), dtype=np.float32)
    if case.group == 1:
        return alone
    shared = np.repeat(rng.standard_normal((*shape, case.n // case.group), dtype=np.float32), case.group, axis=-1)
    return np.asarray(np.float32(np.sqrt(0.5)) * (shared + alone))


def _paths(case: Case, shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Array:
    """Return the change of a playbook's quality along a stream: it rises, and wanders."""
    wander = rng.normal(size=(*shape, n)).cumsum(axis=-1) * 0.5 / np.sqrt(n)
    return np.asarray(wander + np.linspace(-case.stream, case.stream, n))
