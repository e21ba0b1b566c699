"""Simulated tables with known truth, on which intervals and tests are measured.

``python -m tests.report.simulated`` prints the coverage tables of docs/tables-and-figures.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.optimize import brentq
from scipy.special import expit

from ace_bench.core.statistics import Array, Estimate, blocks, paired_difference, score_bounds

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_BASE = 0.3
"""Log odds of the base: it is right in 55 to 57% of the samples."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a simulated table compares.

    A sample is right with log odds that add the difficulty of its group and its own, the quality of the seed's
    playbook, and how playbook and sample fit. ``seed_points`` is the standard deviation of the score over seeds, in
    percentage points; ``graded`` scores are shares of four questions. ``sample_effects`` scales all that belongs to
    samples. With ``stream`` the quality of the playbook rises and wanders along a random order of samples.
    """

    ours: int
    base: int = 1
    n: int = 200
    group: int = 1
    graded: bool = False
    gain: float = 0.0
    seed_points: float = 0.0
    base_adapts: bool = False
    sample_effects: float = 1.0
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Scores (tables, seeds, samples) of both sides, and the true difference of each table."""

    ours: Array
    base: Array
    truth: Array
    orders: NDArray[np.int64] | None = None


def mean_at(log_odds: Array | float, spread: float) -> Array:
    """Return the mean score where log odds are normal with this mean and standard deviation."""
    return expit(np.add.outer(np.asarray(log_odds), spread * _NODES)) @ (_WEIGHTS / _WEIGHTS.sum())


def draw(case: Case, tables: int, rng: np.random.Generator) -> Tables:
    """Draw tables. With one seed the truth is that of its playbook, with several that of the method."""
    own, fit, luck = (case.sample_effects * spread for spread in (1.4, 0.7, 0.5))
    within = float(np.sqrt(own**2 + fit**2 + luck**2))
    slope = float(mean_at(_BASE + 0.05, within) - mean_at(_BASE - 0.05, within)) / 0.1
    seed = case.seed_points / 100 / slope
    spread = {"ours": seed, "base": seed if case.base_adapts else 0.0}
    total = {name: float(np.hypot(within, spread[name])) for name in spread}
    aim = float(mean_at(_BASE, total["base"])) + case.gain
    level = {"base": _BASE, "ours": float(brentq(lambda x: float(mean_at(x, total["ours"])) - aim, -9, 9))}
    groups = case.n // case.group

    def by_group(scale: float) -> Array:
        shared = np.repeat(rng.normal(size=(tables, 1, groups)), case.group, axis=2)
        alone = rng.normal(size=(tables, 1, case.n))
        return scale * (np.sqrt(0.5) * (shared + alone) if case.group > 1 else alone)

    difficulty, truth, scores, orders = by_group(own), {}, {}, None
    for name, seeds in (("ours", case.ours), ("base", case.base)):
        quality = level[name] + spread[name] * rng.normal(size=(tables, seeds, 1))
        if name == "ours" and case.stream:
            orders = rng.permuted(np.tile(np.arange(case.n), (tables, seeds, 1)), axis=2)
            quality = quality + np.take_along_axis(_path(tables, seeds, case.n, rng), orders, axis=2)
        odds = quality + difficulty + by_group(fit) + luck * rng.normal(size=(tables, seeds, case.n))
        chance = expit(odds)
        scores[name] = rng.binomial(4, chance) / 4 if case.graded else (rng.random(chance.shape) < chance).astype(float)
        known = mean_at(quality, within).mean(axis=(1, 2))
        truth[name] = known if seeds == 1 else np.full(tables, float(mean_at(level[name], total[name])))
    if case.stream and case.ours > 1:  # the mean over many streams
        many = level["ours"] + seed * rng.normal(size=(20_000, 1, 1)) + _path(20_000, 1, 60, rng)
        truth["ours"] = np.full(tables, float(mean_at(many, within).mean()))
    return Tables(ours=scores["ours"], base=scores["base"], truth=truth["ours"] - truth["base"], orders=orders)


def _path(tables: int, seeds: int, n: int, rng: np.random.Generator) -> Array:
    """Return the change of a playbook's quality along a stream: it rises, and wanders."""
    wander = rng.normal(size=(tables, seeds, n)).cumsum(axis=2) * 0.5 / np.sqrt(n)
    return wander + np.linspace(-0.4, 0.4, n)


def tests_of(case: Case, drawn: Tables) -> Iterator[tuple[Estimate, float, float]]:
    """Yield estimate, p-value and truth of each table."""
    members = [[*range(start, start + case.group)] for start in range(0, case.n, case.group)]
    paired = case.ours == case.base
    for table, truth in enumerate(drawn.truth):
        groups = members
        if drawn.orders is not None and case.ours == 1:
            places = drawn.orders[table, 0]
            groups = blocks(sorted(members, key=lambda group: min(places[place] for place in group)))
        found = paired_difference(drawn.ours[table], drawn.base[table], groups, paired=paired)
        assert found is not None
        yield found, found.p, float(truth)


def coverage(case: Case, tables: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return how many intervals hold the truth, and how many tests find a difference where there is none.

    The second is nan for one stream: each has a quality of its own, which is never exactly that of the base.
    """
    inside = [
        low <= truth <= high
        for found, _, truth in tests_of(case, draw(case, tables, rng))
        for low, high in [found.bounds()]
    ]
    if case.stream and case.ours == 1:
        return float(np.mean(inside)), float("nan")
    # One seed's playbook is as good as the base only if seeds do not differ.
    equal = replace(case, gain=0.0, seed_points=case.seed_points if case.ours > 1 else 0.0)
    found = [p < 0.05 for _, p, _ in tests_of(equal, draw(equal, tables, rng))]
    return float(np.mean(inside)), float(np.mean(found))


def score_coverage(seeds: int, n: int, log_odds: float, tables: int, rng: np.random.Generator) -> float:
    """Return how many intervals of a right-or-wrong score hold the truth; several seeds differ by about 3 points."""
    quality = log_odds + 0.15 * rng.normal(size=(tables, seeds, 1))
    chance = expit(quality + 1.5 * rng.normal(size=(tables, 1, n)))
    scores = (rng.random((tables, seeds, n)) < chance).astype(float)
    truth = mean_at(quality[:, 0, 0], 1.5) if seeds == 1 else np.full(tables, float(mean_at(log_odds, 1.507)))
    groups = [[place] for place in range(n)]
    found = [score_bounds(table, groups) or (0.0, 1.0) for table in scores]
    return float(np.mean([low <= value <= high for (low, high), value in zip(found, truth, strict=True)]))


SEEDS = {"1 against 1": (1, 1), "3 against 1": (3, 1), "3 against 3": (3, 3), "3 against 5": (3, 5),
         "5 against 1": (5, 1), "5 against 5": (5, 5)}  # fmt: skip
SPREADS = (0.0, 2.0, 5.0, 10.0)
SHAPES = {
    "right or wrong, n = 50": {"n": 50},
    "right or wrong, n = 200": {"n": 200},
    "right or wrong, n = 500": {"n": 500},
    "graded, n = 100": {"n": 100, "graded": True},
    "56 scenarios of 3": {"n": 168, "group": 3},
    "no effect of samples, n = 200": {"n": 200, "sample_effects": 0.01},
}


def cases() -> dict[tuple[str, float, str], Case]:
    """Return all offline cases, by seeds, spread over seeds and shape. The base adapts if it has several seeds."""
    return {
        (name, spread, shape): Case(
            ours=ours, base=base, gain=0.08, seed_points=spread, base_adapts=base > 1, **settings
        )
        for (name, (ours, base)), spread, (shape, settings) in product(SEEDS.items(), SPREADS, SHAPES.items())
        if ours > 1 or spread == 0.0
    }


def streams() -> dict[str, Case]:
    """Return all online cases."""
    return {
        f"{seeds} stream{'s' * (seeds > 1)}, n = {n}": Case(
            ours=seeds, n=n, gain=0.05, seed_points=2.0 * (seeds > 1), stream=True
        )
        for seeds, n in product((1, 3, 5), (100, 400))
    }


def main(tables: int = 2000) -> None:
    """Measure and print."""
    say, rng = Console(width=160).print, np.random.default_rng(20)
    for place, case in cases().items():
        say(*place, *(f"{100 * value:.1f}" for value in coverage(case, tables, rng)), sep=" | ")
    for name, case in streams().items():
        say(name, *(f"{100 * value:.1f}" for value in coverage(case, tables, rng)), sep=" | ")
    for seeds, n, log_odds in product((1, 3, 5), (50, 200), (0.0, 2.0, 4.0)):
        say(seeds, n, log_odds, f"{100 * score_coverage(seeds, n, log_odds, tables, rng):.1f}", sep=" | ")


if __name__ == "__main__":
    main()
