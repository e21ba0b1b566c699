"""Intervals and tests, beside scipy's and statsmodels', and as they were when simulations found them right.

``make statistics`` simulates their error rates.
"""

import math
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from ace_bench.core.statistics import (
    Estimate,
    Source,
    blocks,
    bootstrap_interval,
    exact_bounds,
    holm,
    paired_difference,
    score_bounds,
    t_quantile,
    wilson_bounds,
)


@pytest.mark.parametrize("df", [1, 1.5, 2, 4.7, 30, 1000.5, 1e6, math.inf])
def test_an_interval_reaches_as_far_as_students_t(df):
    low, high = Estimate(value=0.0, samples=Source(variance=1.0, df=df), units=2).bounds()
    assert high == -low == pytest.approx(t.ppf(0.975, df), rel=1e-9)


@pytest.mark.parametrize("value", [0.1, 1.0, 4.0, 30.0])
def test_an_interval_is_never_narrower_than_over_seeds_alone_and_its_p_value_agrees_with_it(value):
    seeds, samples = Source(variance=1.0, df=2), Source(variance=0.5, df=199)
    found = Estimate(value=value, samples=samples, units=200, seeds=seeds)
    assert found.margin(0.99) == pytest.approx(math.hypot(t.ppf(0.995, 2), math.sqrt(0.5) * t.ppf(0.995, 199)))
    low, _ = found.bounds(1 - found.p)
    assert low == pytest.approx(0.0, abs=1e-6)
    alone = Estimate(value=value, samples=samples, units=200)
    assert alone.p == pytest.approx(2 * t.sf(value / math.sqrt(0.5), 199), rel=1e-6, abs=1e-11)


@pytest.mark.parametrize(("count", "n"), [(0, 3), (1, 3), (3, 3), (2, 20)])
def test_a_rate_has_clopper_and_pearsons_bounds_and_wilsons(count, n):
    assert exact_bounds(count, n) == pytest.approx(proportion_confint(count, n, method="beta"))
    wilsons = wilson_bounds(count / n, n, t_quantile(math.inf, 0.95))
    assert wilsons == pytest.approx(proportion_confint(count, n, method="wilson"), abs=1e-12)


SINGLE = [[place] for place in range(40)]
GROUPS = {
    "single": SINGLE,
    "fours": [[*range(first, first + 4)] for first in range(0, 40, 4)],
    "halves": [[*range(20)], [*range(20, 40)]],
}
GROUPS |= {"one": [[*range(40)]]}
SIDES = {
    "same seeds": (3, 3, True),
    "other seeds": (3, 2, False),
    "as many seeds": (2, 2, False),
    "one seed of one side": (3, 1, False),
    "one seed": (1, 1, False),
}


def describe_estimates() -> list[str]:
    """Every figure of comparisons and of single means, by the seeds of the sides and the groups of the samples."""
    rng = np.random.default_rng(0)
    chances = rng.random(40)
    draws = {share: (rng.random((3, 40)) < chances**share).astype(float) for share in (0.5, 1)}
    parts = {"right or wrong": draws, "in thirds": {share: np.round(3 * rng.random((3, 40))) / 3 for share in draws}}
    lines = []
    for kind, scores in parts.items():
        for by, groups in GROUPS.items():
            for sides, (seeds, others, paired) in SIDES.items():
                found = paired_difference(scores[0.5][:seeds], scores[1][:others], groups, paired=paired)
                figures = [] if found is None else _figures(found)
                lines.append(_line(f"{kind}, {by}, {sides}", figures))
            for seeds in (1, 3):
                bounds = score_bounds(scores[1][:seeds], groups)
                lines.append(_line(f"{kind}, {by}, mean of {seeds}", bounds or []))
    alike = paired_difference(draws[1], draws[1], SINGLE, paired=True)
    moved = paired_difference(draws[1][:1] * 0 + 1, draws[1][:1] * 0, SINGLE, paired=False)
    fixed = Estimate(value=0.0, samples=Source(variance=0.0, df=1), units=9)
    by_seeds = Estimate(value=0.2, samples=Source(variance=0.0, df=9), units=9, seeds=Source(variance=0.01, df=2))
    for name, found in (("alike", alike), ("all won", moved), ("nothing varies", fixed), ("seeds alone", by_seeds)):
        lines.append(_line(name, _figures(found)))
    low_high = bootstrap_interval([*range(30)], fmean, group=lambda one: "ab"[one % 2] if one < 8 else "")
    lines.append(_line("bootstrap", low_high))
    return lines


def _figures(found: Estimate) -> list[float | None]:
    low, high = found.bounds()
    parts = [found.value, found.samples.variance, found.samples.df, found.units, found.seeds.variance, found.seeds.df]
    wilson = found.wilson if 0 <= found.value <= 1 else ()  # for means of scores
    return [*parts, low, high, *wilson, found.p, found.seeds_p, found.detectable]


def _line(name, figures):
    return f"{name}: {' '.join('none' if one is None else f'{round(one, 9) + 0.0:.6g}' for one in figures)}".strip()


def test_estimates_stay_as_they_were(snapshot):
    assert describe_estimates() == snapshot


@pytest.mark.parametrize(("count", "sizes"), [(2, [1, 1]), (3, [2, 1]), (9, [3, 3, 3]), (17, [5, 4, 4, 4]), (1, [1])])
def test_blocks_are_about_as_many_as_long(count, sizes):
    assert [len(block) for block in blocks(SINGLE[:count])] == sizes
    assert [place for block in blocks(SINGLE[:count]) for place in block] == [*range(count)]


def test_holm_multiplies_by_the_tests_that_are_left():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
