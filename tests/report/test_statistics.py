"""Intervals and paired tests: known values, and what they promise held against simulations."""

import numpy as np
import pytest

from ace_bench.core.errors import DataError
from ace_bench.report.statistics import Point, compare, mean_score, score_interval


def points(scores, groups=None):
    return {f"s{n}": Point(score=float(score), group=groups[n] if groups else "") for n, score in enumerate(scores)}


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [
        (9, 1, 22 / 1024),
        (1, 9, 22 / 1024),
        (5, 5, 1.0),
        (10, 0, 2 / 1024),
        (1, 0, 1.0),
        (0, 0, 1.0),
        (600, 500, 0.0028),
    ],
)
def test_right_or_wrong_is_mcnemars_exact_test(better, worse, p):
    ours = points([1] * better + [0] * worse + [1] * 7)
    base = points([0] * better + [1] * worse + [1] * 7)
    found = compare([ours], [base])
    assert (found.test, found.better, found.worse, found.discordant) == ("mcnemar", better, worse, better + worse)
    assert found.p == pytest.approx(p, abs=5e-5)
    assert found.n == better + worse + 7
    assert found.difference == pytest.approx(100 * (better - worse) / found.n)
    assert found.within_noise() is (p >= 0.05)


def test_graded_scores_try_every_flip_of_signs():
    found = compare([points([0.25, 0.75, 1, 0.5])], [points([0, 0.25, 0.25, 0.5])])
    # +0.25 +0.5 +0.75: of eight flips only all plus and all minus reach 1.5
    assert (found.test, found.p, found.discordant) == ("permutation", 2 / 8, 3)


def test_many_graded_scores_count_every_flip_and_never_promise_certainty():
    ours, base = points([0.75, 0.5] * 100), points([0.25, 0.25] * 100)
    found = compare([ours], [base])
    assert found.p == pytest.approx(2 / 2**200), "all plus, or all minus"
    assert found.interval.low == pytest.approx(37.5, abs=3)
    assert not found.within_noise()
    assert compare([points([0.75, 0.5] * 1000)], [points([0.25, 0.25] * 1000)]).p > 0


def test_scores_without_a_common_step_draw_flips():
    rng = np.random.default_rng(3)
    coarse = np.round(rng.normal(0.52, 0.1, size=60), 2)
    fine, base = points(coarse + rng.uniform(-1e-5, 1e-5, size=60)), points([0.5] * 60)
    counted, drawn = compare([points(coarse)], [base]), compare([fine], [base])
    assert drawn == compare([fine], [base]), "the same answer each time"
    assert (counted.test, drawn.test) == ("permutation", "permutation")
    assert drawn.p != counted.p
    assert drawn.p == pytest.approx(counted.p, abs=0.01), "drawing tells what counting does"
    assert compare([fine], [points([0.0] * 60)]).p == pytest.approx(1 / 10_001)


def test_a_difference_finer_than_any_step_is_compared_like_others():
    ours, base = [0.5, 0.25, 0.5, 2e-8], [0.0, 0.5, 0.0, 0.0]
    found = compare([points(ours)], [points(base)])
    assert 0.3 < found.p < 0.6


def test_the_tasks_of_a_scenario_flip_together():
    groups = [f"scenario {n // 3}" for n in range(12)]
    found = compare([points([1] * 12, groups)], [points([0] * 12, groups)])
    assert (found.better, found.worse) == (12, 0)
    assert found.p == 2 / 2**4, "four scenarios, not twelve tasks"


def test_repetitions_are_averaged_by_sample():
    ours = [points([1, 1, 0, 0]), points([1, 0, 0, 0])]
    found = compare(ours, [points([0, 0, 0, 1])])
    assert (found.better, found.worse) == (2, 1)
    assert found.difference == pytest.approx(100 * (1.5 - 1) / 4)
    assert mean_score(ours) == pytest.approx(100 * 3 / 8)


def test_repetitions_that_differ_widen_the_interval():
    half = [1, 0] * 50
    alike = score_interval([points(half)] * 4)
    unlike = score_interval([points([1] * 100), points([0] * 100), points(half), points(half)])
    assert alike.high - alike.low < 21
    assert unlike.high - unlike.low > 45


def test_a_single_group_has_no_interval():
    assert score_interval([points([1, 0], ["one", "one"])]) is None
    assert score_interval([points([1])]) is None


@pytest.mark.parametrize("base", [points([1]), points([1, 0, 1]), {"other": Point(score=1.0), "s0": Point(score=0.0)}])
def test_runs_on_different_samples_are_not_compared(base):
    with pytest.raises(DataError, match="different samples"):
        compare([points([1, 0])], [base])


def test_nothing_is_not_compared():
    with pytest.raises(DataError, match="no scores"):
        compare([{}], [{}])


def scenarios(rng, count=40, size=3):
    """Scores of tasks that share the luck of their scenario."""
    luck = rng.beta(0.5, 0.5, size=count)
    scores = rng.random((count, size)) < luck[:, np.newaxis]
    return scores.ravel(), [f"scenario {n // size}" for n in range(count * size)]


def share(outcomes):
    outcomes = list(outcomes)
    return sum(outcomes) / len(outcomes)


@pytest.mark.parametrize(("grouped", "low", "high"), [(True, 0.90, 0.985), (False, 0.60, 0.89)])
def test_an_interval_covers_the_truth_as_often_as_it_says_if_it_knows_the_groups(grouped, low, high):
    rng = np.random.default_rng(1)

    def covers():
        scores, groups = scenarios(rng)
        found = score_interval([points(scores, groups if grouped else None)])
        return found.low <= 50 <= found.high

    assert low < share(covers() for _ in range(200)) < high


@pytest.mark.parametrize("grouped", [True, False])
def test_equals_are_told_apart_no_more_often_than_promised_if_groups_are_known(grouped):
    rng = np.random.default_rng(2)

    def told_apart():
        ours, groups = scenarios(rng, count=15, size=6)
        base, _ = scenarios(rng, count=15, size=6)
        known = groups if grouped else None
        return not compare([points(ours, known)], [points(base, known)]).within_noise()

    rate = share(told_apart() for _ in range(150))
    assert rate < 0.09 if grouped else rate > 0.2
