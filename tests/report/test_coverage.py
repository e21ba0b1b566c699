"""Intervals hold the truth as often as they say, and tests find differences where there are none as rarely."""

import numpy as np
import pytest

from tests.report.simulated import Case, cases, coverage, score_coverage, streams

TABLES = 2000
LOW, HIGH, FALSE = 0.93, 0.97, 0.06
NOISE = 0.015
"""Three standard errors of a coverage measured on 2,000 tables."""


def held(case, seed):
    covered, false = coverage(case, TABLES, np.random.default_rng(seed))
    assert LOW - NOISE < covered < HIGH + NOISE, case
    assert not false > FALSE + NOISE, case
    return covered, false


def test_an_interval_covers_the_truth_in_a_small_simulation():
    covered, false = coverage(Case(ours=3, base=3, n=60, seed_points=5, gain=0.08), 300, np.random.default_rng(0))
    assert 0.9 < covered <= 1
    assert false < 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", ["1 against 1", "3 against 1", "3 against 3", "5 against 1", "5 against 5"])
def test_intervals_and_tests_keep_their_promise_with_one_three_and_five_seeds(seeds):
    chosen = [
        case for (name, spread, _), case in cases().items() if name == seeds and spread in (0, 5) and case.n < 500
    ]
    measured = [held(case, place) for place, case in enumerate(chosen)]
    covered, false = np.mean(measured, axis=0)
    assert LOW < covered < HIGH
    assert false < FALSE


@pytest.mark.thorough
@pytest.mark.parametrize("case", streams().values(), ids=streams())
def test_online_streams_keep_it_too(case):
    held(case, 7)


@pytest.mark.thorough
@pytest.mark.parametrize("log_odds", [0.0, 4.0])
@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_scores_keep_it_also_near_100_percent(seeds, log_odds):
    covered = score_coverage(seeds, 50, log_odds, TABLES, np.random.default_rng(8))
    assert LOW - NOISE < covered < HIGH + NOISE
