"""Intervals whose items depend on each other: groups are drawn whole."""

import math
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import t, ttest_ind
from statsmodels.stats.proportion import proportion_confint

from ace_bench.core.statistics import (
    Estimate,
    Source,
    blocks,
    bootstrap_interval,
    exact_bounds,
    paired_difference,
    t_quantile,
    wilson_bounds,
)


def test_a_group_is_drawn_whole_and_so_widens_the_interval():
    scores = [("s1", 100.0)] * 30 + [("s2", 0.0)] * 30 + [("s3", 100.0)] * 30 + [("s4", 0.0)] * 30

    def interval(group):
        return bootstrap_interval(scores, lambda some: fmean(score for _, score in some), group=group)

    low, high = interval(lambda item: item[0])
    assert (low, high) == (0.0, 100.0), "four scenarios, all or nothing: nearly no information"
    narrow_low, narrow_high = interval(lambda _: "")
    assert 40 < narrow_low < 50 < narrow_high < 60


def test_items_without_a_group_stand_alone_beside_groups():
    drawn = []
    items = ["a1", "a2", "", "b1"]
    bootstrap_interval(items, lambda some: drawn.append(tuple(some)) or 0.0, group=lambda item: item[:1])
    assert all(("a1" in some) == ("a2" in some) for some in drawn)
    assert any("" in some and "b1" not in some for some in drawn)


def test_one_group_alone_says_nothing_of_its_spread():
    assert bootstrap_interval([1.0, 2.0, 3.0], fmean, group=lambda _: "one") is None


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


def test_sides_with_other_seeds_have_welchs_interval_over_seeds():
    ours, base = np.array([0.4, 0.5, 0.7]), np.array([0.2, 0.25, 0.3, 0.35, 0.1])
    every = np.ones(2_000)
    groups = [[place] for place in range(len(every))]
    found = paired_difference(np.outer(ours, every), np.outer(base, every), groups, paired=False)
    expected = ttest_ind(ours, base, equal_var=False).confidence_interval(0.99)
    assert found.bounds(0.99) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_chance_within_seeds_counts_once_and_even_groups_are_not_surer_than_their_samples():
    rng = np.random.default_rng(1)
    coins = (rng.random((20, 200)) < 0.5).astype(float)
    alone = [[place] for place in range(200)]
    found = paired_difference(coins, np.zeros((1, 200)), alone, paired=False)
    assert found.samples.variance < 0.5 * coins.mean(axis=0).var() / 200, "samples do not differ, replies do"
    same = np.repeat(coins[:1], 3, axis=0)
    same[0, 0] = 1 - same[0, 0]
    fixed = paired_difference(same, np.zeros((1, 200)), alone, paired=False)
    assert fixed.samples.variance > 0.9 * coins[0].var() / 200, "samples differ, replies do not"
    even = np.tile([1.0, 0.0], (1, 100))
    one, other = (
        paired_difference(even, np.zeros((1, 200)), groups, paired=False) for groups in (alone, blocks(alone))
    )
    assert other.variance >= 0.99 * one.variance
