"""Intervals whose items depend on each other: groups are drawn whole."""

import math
from statistics import fmean

import pytest
from scipy.stats import t

from ace_bench.core.statistics import Estimate, bootstrap_interval


def test_a_group_is_drawn_whole_and_so_widens_the_interval():
    scores = [("s1", 100.0)] * 30 + [("s2", 0.0)] * 30 + [("s3", 100.0)] * 30 + [("s4", 0.0)] * 30

    def interval(group):
        return bootstrap_interval(scores, lambda some: fmean(score for _, score in some), seed=0, group=group)

    low, high = interval(lambda item: item[0])
    assert (low, high) == (0.0, 100.0), "four scenarios, all or nothing: nearly no information"
    narrow_low, narrow_high = interval(lambda _: "")
    assert 40 < narrow_low < 50 < narrow_high < 60


def test_items_without_a_group_stand_alone_beside_groups():
    drawn = []
    bootstrap_interval(
        ["a1", "a2", "", "b1"],
        lambda some: drawn.append(tuple(some)) or 0.0,
        seed=0,
        group=lambda item: item[:1],
    )
    assert all(("a1" in some) == ("a2" in some) for some in drawn)
    assert any("" in some and "b1" not in some for some in drawn)


def test_one_group_alone_says_nothing_of_its_spread():
    assert bootstrap_interval([1.0, 2.0, 3.0], fmean, seed=0, group=lambda _: "one") is None


@pytest.mark.parametrize("df", [1, 1.5, 2, 4.7, 30, 1000.5, 1e6, math.inf])
def test_an_interval_reaches_as_far_as_students_t(df):
    low, high = Estimate(value=0.0, variance=1.0, df=df, units=2).bounds
    assert high == -low == pytest.approx(t.ppf(0.975, df), rel=1e-9)
