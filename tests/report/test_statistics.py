"""Intervals and paired tests: known values, what the libraries compute, and what must not change a result."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from ace_bench.core.errors import DataError
from ace_bench.core.statistics import holm
from ace_bench.report.looks import level_of_look, overall_p
from ace_bench.report.statistics import (
    Interval,
    Point,
    compare,
    judge_equivalence,
    mean_score,
    reasons_score_wide,
    reasons_wide,
    score_interval,
    seed_spread,
)

YOUNG, SEEDS, TWO = "fewer than 5 streams", "2 to 4 seeds", "two seeds on a side"
OVER_BLOCKS = "t over blocks of the stream"
ONE, FEW, ALIKE = "3 or 4 seeds against one", "under 50 samples or groups", "under 10 samples differ"


def points(scores, groups=None, places=None):
    return {
        f"s{n:03}": Point(
            score=float(score), group=groups[n] if groups else "", place=-1 if places is None else int(places[n])
        )
        for n, score in enumerate(scores)
    }


def run(scores, groups=None):
    return {0: points(scores, groups)}


def seeds(*scores):
    return {seed: points(one) for seed, one in enumerate(scores)}


def share(n, right):
    return [1.0] * right + [0.0] * (n - right)


@pytest.mark.parametrize(("n", "right"), [(10, 0), (10, 10), (40, 1), (57, 31), (441, 350)])
def test_the_interval_of_right_or_wrong_answers_is_wilsons(n, right):
    found = score_interval(run(share(n, right)))
    expected = proportion_confint(right, n, method="wilson")
    assert (found.low, found.high) == pytest.approx(tuple(100 * bound for bound in expected))


def test_the_interval_of_a_difference_counts_one_more_win_and_one_more_loss():
    found = compare(run(share(48, 12)), run([0.0] * 48))
    shares = np.array([1.0] * 13 + [-1.0] + [0.0] * 36)
    reach = stats.t.ppf(0.975, 49) * stats.sem(shares)
    expected = (100 * (shares.mean() - reach), 100 * (shares.mean() + reach))
    assert (found.interval.low, found.interval.high) == pytest.approx(expected)
    equal = compare(run(share(48, 48)), run(share(48, 48)))
    assert -8 < equal.interval.low < 0 < equal.interval.high < 8, "equal answers do not prove that contexts are equal"
    assert (equal.p, equal.better, equal.worse, equal.wide) == (1.0, 0, 0, (FEW, ALIKE))
    won = compare(run([1.0, 0.0, 0.5, 1.0]), run([0.0, 0.5, 0.5, 0.5]))
    assert (won.better, won.worse, won.discordant) == (2, 1, 3)


def test_seeds_that_disagree_are_not_averaged_away():
    base = share(400, 200)
    ours = [share(400, 160), share(400, 220), share(400, 280)]  # -10, +5 and +20 points
    found = compare(seeds(*ours), run(base))
    by_seeds = stats.ttest_1samp([-10.0, 5.0, 20.0], 0)
    assert found.difference == pytest.approx(5.0)
    assert found.spread == pytest.approx(15.0)
    assert found.interval.low < -25
    assert found.interval.high > 35
    assert found.p > 0.5
    fixed = compare(seeds(*ours), seeds(base, base, base), base_adapts=False)
    assert fixed.interval == found.interval, "a base without a playbook has no variance between seeds"
    assert found.seeds_p == pytest.approx(by_seeds.pvalue, abs=0.01)
    assert (found.test, found.wide) == ("t over seeds and samples", (ONE,))
    assert found.detectable > 40
    assert compare(run(base), seeds(base, base)).test == found.test
    assert found.interval_at(0.95) == found.interval
    assert found.interval_at(0.99).high > found.interval.high


def test_the_test_over_seeds_is_a_t_test_paired_where_both_have_the_same_seeds():
    rng = np.random.default_rng(0)
    ours, base = ([rng.random(80) for _ in range(count)] for count in (3, 3))
    means = [[100 * one.mean() for one in runs] for runs in (ours, base)]
    paired = compare(seeds(*ours), seeds(*base))
    assert paired.seeds_p == pytest.approx(stats.ttest_rel(*means).pvalue, rel=0.1)
    unpaired = compare(seeds(*ours), {seed + 5: one for seed, one in seeds(*base).items()})
    assert unpaired.seeds_p == pytest.approx(stats.ttest_ind(*means, equal_var=False).pvalue, rel=0.1)
    assert unpaired.spread is None
    wrong, one_right = [0.0] * 20, share(20, 1)
    assert compare(seeds(wrong, wrong, wrong), run(one_right)).seeds_p is None, "equal seeds prove nothing"


def test_graded_scores_take_the_t_test():
    rng = np.random.default_rng(3)
    ours, base = rng.random(300), rng.random(300)
    found = compare(run(ours), run(base))
    expected = stats.ttest_rel(ours, base)
    bounds = expected.confidence_interval()
    assert found.test == "t over samples"
    assert found.p == pytest.approx(expected.pvalue, abs=0.01)
    assert (found.interval.low, found.interval.high) == pytest.approx((100 * bounds.low, 100 * bounds.high), abs=0.2)
    assert compare(run([0.75, 0.5] * 100), run([0.25, 0.25] * 100)).p > 0, "no test is certain"
    effect = TTestPower().solve_power(nobs=300, alpha=0.05, power=0.8)
    assert found.detectable == pytest.approx(100 * effect * np.std(ours - base, ddof=1), rel=0.05)


@pytest.mark.parametrize("gain", [0.0, 0.25])
@pytest.mark.parametrize("places", [None, list(range(20))])
def test_no_interval_of_few_samples_is_a_point(gain, places):
    """Also where every block of a stream has as many right answers as the others, or all gains are equal."""
    fifth = points([1.0, 0.0, 0.0, 0.0, 0.0] * 4, None, places)
    ours = {name: Point(score=min(1.0, one.score + gain), place=one.place) for name, one in fifth.items()}
    found, score = compare({0: ours}, {0: fifth}).interval, score_interval({0: fifth})
    assert found.high - found.low > 8
    assert score.low < 10
    assert score.high > 30
    same = compare({0: ours}, {0: ours})
    assert same.interval.high > 5
    assert (same.test, same.wide) == (
        ("t over samples", (FEW, ALIKE)) if places is None else (OVER_BLOCKS, (YOUNG, FEW, ALIKE))
    )
    assert reasons_score_wide({0: ours}) == (() if places is None else (YOUNG, FEW))


@pytest.mark.parametrize("right", [20, 36, 40])
def test_equal_results_of_more_seeds_do_not_narrow_an_interval(right):
    """A gain that no seed has shown may still be that of a sample that was not drawn."""
    one, several = (compare(seeds(*[share(40, right)] * count), seeds(*[share(40, 20)] * count)) for count in (1, 5))
    assert several.interval == one.interval
    assert several.interval.high - several.interval.low > 13


def test_several_seeds_near_an_end_against_one_run_are_named():
    base, near, amid = share(100, 80), share(100, 95), share(100, 89)
    assert compare(seeds(near, near), run(base)).near_end
    assert not compare(seeds(amid, amid), run(base)).near_end
    assert not compare(seeds(near, near), seeds(near, near)).near_end, "both sides vary alike"
    assert not compare(run(near), run(base)).near_end, "of one run it is about this playbook"


def test_holm_corrects_as_statsmodels_does():
    p_values = list(np.random.default_rng(5).random(12) ** 3)
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
    assert holm([]) == []


@pytest.mark.parametrize(("looks", "boundary"), [(1, 0.05), (2, 0.0294), (3, 0.0221), (5, 0.0158), (10, 0.0106)])
def test_looks_are_corrected_by_pococks_boundary(looks, boundary):
    """The published levels of a look."""
    assert 1 - level_of_look(0.95, looks) == pytest.approx(boundary, abs=0.00005)
    assert overall_p(1 - level_of_look(0.95, looks), looks) == pytest.approx(0.05)
    assert overall_p(1e-12, looks) <= looks * 1e-12
    assert overall_p(1.0, looks) == 1.0
    assert overall_p(0.0, looks) == 0.0


def test_a_comparison_that_is_looked_at_more_often_has_a_wider_interval_and_a_larger_p():
    once, often = (compare(run(share(48, 30)), run(share(48, 24)), looks=looks) for looks in (1, 5))
    assert once.p < 0.05 < often.p
    assert once.interval.low > 0 > often.interval.low
    assert often.interval == once.interval_at(level_of_look(0.95, 5))
    assert often.interval_at(0.95) == often.interval


def test_the_tasks_of_a_scenario_count_together():
    groups = [f"scenario {n // 3}" for n in range(60)]
    scores = np.repeat([1.0, 0.0, 1.0, 1.0], 15)
    alone, together = compare(run(scores), run([0.0] * 60)), compare(run(scores, groups), run([0.0] * 60, groups))
    assert together.test == "t over groups"
    assert together.p > alone.p
    width = [one.high - one.low for one in (score_interval(run(scores)), score_interval(run(scores, groups)))]
    assert width[1] > 1.5 * width[0]


def test_repetitions_that_differ_widen_the_interval_and_equal_ones_do_not_narrow_it():
    half = [1, 0] * 50
    alone, alike = score_interval(run(half)), score_interval(seeds(half, half, half, half))
    unlike = seeds([1] * 100, [0] * 100, half, half)
    assert alike.high - alike.low == pytest.approx(alone.high - alone.low, rel=0.05)
    assert score_interval(unlike).high - score_interval(unlike).low > 70
    assert seed_spread(unlike) == pytest.approx(np.std([100, 0, 50, 50], ddof=1))
    assert seed_spread(run(half)) is None
    assert seed_spread(seeds([1] * 100, [0] * 100)) == pytest.approx(100 * 2**0.5 / 2)
    assert mean_score(unlike) == 50.0


def test_the_order_of_a_journal_changes_nothing():
    rng = np.random.default_rng(6)
    groups = [f"scenario {n // 3}" for n in range(60)]
    ours = {seed: points(rng.random(60), groups) for seed in range(3)}
    base = {seed: points(rng.random(60), groups) for seed in range(3)}

    def shuffled(runs):
        return {
            seed: {name: runs[seed][name] for name in rng.permutation(list(runs[seed]))}
            for seed in rng.permutation(list(runs))
        }

    assert compare(shuffled(ours), shuffled(base)) == compare(ours, base)
    assert score_interval(shuffled(ours)) == score_interval(ours)


def test_one_stream_is_cut_into_blocks_of_its_order_and_several_count_by_seed():
    rng = np.random.default_rng(7)
    drift = np.repeat(rng.integers(2, size=20), 20)  # twenty neighbours share their luck
    order = rng.permutation(400)
    scores = np.empty(400)
    scores[order] = drift
    places = np.empty(400, dtype=int)
    places[order] = np.arange(400)
    stream, alone = {0: points(scores, None, places)}, run(scores)
    assert compare(stream, run([0.0] * 400)).test == OVER_BLOCKS
    width = [one.high - one.low for one in (score_interval(alone), score_interval(stream))]
    assert width[1] > 3 * width[0]
    several = {0: points(scores, None, places), 1: points(scores, None, rng.permutation(400))}
    assert compare(several, run([0.0] * 400)).test == "t over seeds and samples"


def test_a_single_group_has_no_interval():
    one = run([1, 0], ["one", "one"])
    assert score_interval(one) is score_interval(run([1])) is None
    found = compare(one, run([0, 0], ["one", "one"]))
    assert (found.interval, found.interval_at(0.99), found.detectable, found.p) == (None, None, None, 1.0)


def test_runs_on_different_samples_or_none_are_not_compared():
    for base in (points([1]), points([1, 0, 1]), {"other": Point(score=1.0), "s0": Point(score=0.0)}):
        with pytest.raises(DataError, match="different samples"):
            compare(run([1, 0]), {0: base})
    with pytest.raises(DataError, match="no scores"):
        compare({0: {}}, {0: {}})


@pytest.mark.parametrize(
    ("ours", "base", "reason"),
    [
        *((1, None, ""), (2, None, SEEDS), (4, None, SEEDS), (5, None, "")),
        *((1, 1, ""), (1, 2, TWO), (2, 1, TWO), (2, 2, TWO), (2, 5, TWO), (3, 1, ONE), (1, 4, ONE), (5, 1, "")),
        *((3, 3, ""), (3, 4, ""), (5, 4, ""), (5, 5, "")),
    ],
)
def test_designs_whose_intervals_are_wider_than_they_need_to_be_say_why(ours, base, reason):
    reasons, young = (reason,) * bool(reason), (YOUNG,) * (max(ours, base or 0) < 5)
    few = (FEW,) * ((ours, base) != (1, None))
    assert reasons_wide(ours, base, 50, streams=False) == reasons
    assert reasons_wide(ours, base, 49, streams=False) == reasons + few
    assert reasons_wide(ours, base, 50, streams=True) == young
    assert reasons_wide(ours, base, 49, streams=True) == (*young, FEW)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        *((-1.9, 1.9, "equivalent"), (-2, 1, "inconclusive"), (-1, 2, "inconclusive"), (-3, 3, "inconclusive")),
        *((2, 3, "inconclusive"), (2.1, 3, "contradicted"), (-3, -2, "inconclusive"), (-3, -2.1, "contradicted")),
    ],
)
def test_a_difference_is_equivalent_within_the_margin_and_contradicted_outside(low, high, verdict):
    assert judge_equivalence(Interval(low=low, high=high), 2) == verdict
