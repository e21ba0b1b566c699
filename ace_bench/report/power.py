"""How often a comparison with a true gain ends as claims need it, by seeds, samples and the spread over seeds.

The scores are simulated. What judges them is the test of the tables (``core.statistics``). A sample is right with log
odds that add the quality of the seed's playbook, the sample's difficulty, and how method and sample fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from ace_bench.core.statistics import LEVEL, Array, Variances, difference_variances
from ace_bench.report.looks import level_of_look
from ace_bench.report.statistics import EQUIVALENCE_LEVEL, Seeds, scores_of, units_of

SIMULATED = 500
"""Comparisons behind each figure: a power of 50% is known to 2.2 points."""
_AT_ONCE = 2_000_000
"""Answers simulated at a time, which bounds the memory."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_WIDEST, _FARTHEST, _HALVINGS = 12.0, 40.0, 50
"""Largest spread of log odds, largest log odds, and how often an interval of candidates is halved."""
_UPPER = 0.8
"""The confidence of the upper limit of a spread over few seeds, for planning (Browne 1995)."""


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What is assumed of a method and its base, in percent and percentage points.

    ``score`` is the base's. ``repeated`` is the share of samples on which two runs of one method differ, and
    ``discordant`` that on which a run of the method and one of the base differ, both where there is no gain. Samples
    come in groups of ``group``. ``alike`` is the share of a gain's variance over samples that those of one group have
    in common. Without ``base_adapts`` the base is a single run.
    """

    score: float = 55.0
    repeated: float = 35.0
    discordant: float = 38.0
    group: int = 1
    alike: float = 0.0
    base_adapts: bool = False


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is to be found: a ``gain`` above 0, or with ``within`` that the difference lies within this margin.

    ``tests`` are corrected together (the first step of Holm's method), and the results are looked at ``looks`` times
    while runs are added.
    """

    gain: float = 5.0
    within: float | None = None
    tests: int = 1
    looks: int = 1

    @property
    def level(self) -> float:
        """The level of the interval that decides."""
        alone = LEVEL if self.within is None else EQUIVALENCE_LEVEL
        return level_of_look(1 - (1 - alone) / self.tests, self.looks)

    def reached(self, variances: Variances) -> Array:
        """Say for each comparison whether its interval shows what is to be found."""
        reach = variances.reach(self.level)
        if self.within is None:
            return np.asarray(variances.value > reach)
        return np.asarray(np.abs(variances.value) + reach < self.within / 100)


@dataclass(frozen=True, kw_only=True)
class Design:
    """``seeds`` of the method on ``samples``. Its true score varies over seeds by ``spread`` points (sd)."""

    seeds: int
    samples: int
    spread: float


def power(assumed: Assumed, goal: Goal, design: Design, simulated: int = SIMULATED) -> float:
    """Return the share of simulated comparisons that end as the goal says. A base that adapts has the same seeds."""
    rng, world = np.random.default_rng(0), _World.of(assumed, goal.gain, design.spread)
    starts = range(0, design.samples, assumed.group)
    groups = [[*range(start, min(start + assumed.group, design.samples))] for start in starts]
    size, reached = max(1, _AT_ONCE // (design.seeds * design.samples)), 0
    for start in range(0, simulated, size):
        ours, base = world.draw(design, len(groups), min(size, simulated - start), rng)
        variances = difference_variances(ours, base, groups, paired=assumed.base_adapts)
        reached += int(goal.reached(variances).sum())
    return reached / simulated


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What runs say: the assumptions, the spread over seeds and its upper 80% limit in points, and their samples.

    ``spread`` is ``None`` if no side has two seeds.
    """

    assumed: Assumed
    samples: int
    spread: float | None = None
    upper: float | None = None


def measure_runs(ours: Seeds, base: Seeds, *, base_adapts: bool) -> Measured:
    """Measure what planning assumes. A difference between graded scores counts as its square does.

    Raises ``DataError`` if the samples differ.
    """
    both = scores_of([ours, base])
    groups = units_of([ours, base]).groups
    several = [side for side in (both if base_adapts else both[:1]) if len(side) > 1]
    differences = (both[0][:, None] - both[1]).reshape(-1, both[0].shape[-1])
    discordant = float(differences.var(axis=-1).mean())
    repeated = min(Assumed().repeated / 100, discordant)
    if several:  # twice the variance over seeds, within samples
        within = [(side - side.mean(axis=-1, keepdims=True)).var(axis=0, ddof=1).mean() for side in several]
        repeated = 2 * float(np.mean(within))
    samples, group = both[0].shape[-1], round(both[0].shape[-1] / len(groups))
    gains = both[0].mean(axis=0) - both[1].mean(axis=0)
    luck = repeated / 2 * (1 / len(both[0]) + 1 / len(both[1]))
    assumed = Assumed(
        score=100 * float(both[1].mean()), repeated=100 * repeated, discordant=100 * discordant, group=group,
        alike=_alike(gains, groups, luck) if group > 1 else 0.0, base_adapts=base_adapts,
    )  # fmt: skip
    if not several:
        return Measured(assumed=assumed, samples=samples)
    df = sum(len(side) - 1 for side in several)
    variance = sum(side.mean(axis=-1).var(ddof=1) * (len(side) - 1) for side in several) / df
    highest = variance * df / float(chdtri(df, _UPPER))
    spread, upper = (100 * math.sqrt(max(0.0, of_means - repeated / 2 / samples)) for of_means in (variance, highest))
    return Measured(assumed=assumed, samples=samples, spread=spread, upper=upper)


def _alike(gains: Array, groups: Sequence[Sequence[int]], luck: float) -> float:
    """Return the share of the lasting part of the gains' variance that the samples of a group have in common."""
    centred = gains - gains.mean()
    total = float((centred**2).mean())
    pairs = sum(float(centred[[*group]].sum()) ** 2 - float((centred[[*group]] ** 2).sum()) for group in groups)
    count = sum(len(group) * (len(group) - 1) for group in groups)
    return min(1.0, max(0.0, pairs / count / (total - luck))) if count and total > luck else 0.0


@dataclass(frozen=True, kw_only=True)
class _World:
    """Log odds of both sides, the spreads that samples share and do not, and those over seeds."""

    assumed: Assumed
    ours: float
    base: float
    difficulty: float
    fit: float
    over_seeds: float

    @classmethod
    def of(cls, assumed: Assumed, gain: float, spread: float) -> _World:
        score, total = assumed.score / 100, 0.0
        if assumed.repeated / 100 < 2 * score * (1 - score):
            total = _solve(lambda odds: _both_right(score, odds, 1.0), score - assumed.repeated / 200, _WIDEST)
        shared = _solve(lambda share: _both_right(score, total, share), score - assumed.discordant / 200, 1.0)
        base, middle = _log_odds(score, total), score + gain / 100
        slope = (_mean(base + 0.05, total) - _mean(base - 0.05, total)) / 0.1
        seeds = spread / 100 / float(slope)
        return cls(
            assumed=assumed, ours=_log_odds(middle, math.hypot(total, seeds)),
            base=_log_odds(score, math.hypot(total, seeds * assumed.base_adapts)),
            difficulty=total * math.sqrt(shared), fit=total * math.sqrt(1 - shared), over_seeds=seeds,
        )  # fmt: skip

    def draw(self, design: Design, groups: int, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw scores (size, seeds, samples) of the method and of the base."""
        difficulty = self.difficulty * rng.standard_normal((size, 1, design.samples), dtype=np.float32)
        sides = []
        for level, seeds, spread in (
            (self.ours, design.seeds, self.over_seeds),
            (self.base, design.seeds if self.assumed.base_adapts else 1, self.over_seeds * self.assumed.base_adapts),
        ):
            fit = math.sqrt(1 - self.assumed.alike) * rng.standard_normal(difficulty.shape, dtype=np.float32)
            if self.assumed.alike:
                common = rng.standard_normal((size, 1, groups), dtype=np.float32)
                fit += math.sqrt(self.assumed.alike) * np.repeat(common, self.assumed.group, -1)[..., : design.samples]
            odds = level + spread * rng.standard_normal((size, seeds, 1), dtype=np.float32) + difficulty
            chance = 1 / (1 + np.exp(-odds - self.fit * fit))
            sides.append((rng.random(chance.shape, dtype=np.float32) < chance).astype(float))
        return sides[0], sides[1]


def _mean(log_odds: Array | float, spread: float) -> Array:
    """Return the mean score where log odds are normal."""
    return np.asarray((1 / (1 + np.exp(-np.add.outer(log_odds, spread * _NODES)))) @ _WEIGHTS)


def _log_odds(score: float, spread: float) -> float:
    return _solve(lambda odds: float(_mean(odds, spread)), score, _FARTHEST, low=-_FARTHEST)


def _both_right(score: float, spread: float, shared: float) -> float:
    """Return how often two runs of this score are both right, if they share this part of the variance of log odds."""
    level, own = _log_odds(score, spread), spread * math.sqrt(1 - shared)
    return float(_mean(level + spread * math.sqrt(shared) * _NODES, own) ** 2 @ _WEIGHTS)


def _solve(function: Callable[[float], float], wanted: float, high: float, low: float = 0.0) -> float:
    """Return where a rising function has a value, or the end of the range that is nearer to it."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
    return (low + high) / 2
