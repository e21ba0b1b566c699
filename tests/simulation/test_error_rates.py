"""Intervals hold the truth as often as they say, and verdicts on worlds with known truth are rarely wrong."""

import pytest

from tests.simulation.claim_worlds import WORLDS, World, verdicts_of, world_results
from tests.simulation.error_rates import DESIGNS, cases, coverage, family_errors, score_coverage, streams
from tests.simulation.score_worlds import Case

NOISE = 0.015
"""Three standard errors of a coverage measured on 2,000 tables."""


def test_an_interval_covers_the_truth_and_a_family_finds_few_false_differences_in_a_small_simulation():
    case = Case(ours=3, base=3, n=60, spreads=(5.0, 5.0))
    assert 0.92 < coverage(case, 300).method <= 1
    assert max(family_errors(case, 200)) < 0.1
    collapsing = coverage(Case(ours=3, base=3, n=60, spreads=(2.0, 2.0), collapse=0.2), 300)
    assert collapsing.refused == pytest.approx(1 - 0.8**3, abs=0.1)


@pytest.mark.parametrize(
    "world", [pytest.param(name, marks=[] if share == 1 else [pytest.mark.slow]) for name, share in WORLDS.items()]
)
def test_no_verdict_on_a_world_is_wrong_beyond_chance(world):
    """The claims table itself judges invented runs of all claims, three seeds each."""
    found = verdicts_of(world_results(World(share=WORLDS[world], seeds=3, seed=3)))
    gains, primary = found["gains"], found["primary"]
    if WORLDS[world] >= 0.5:
        assert gains["contradicted"] <= 4, "of 60; below half of the paper's number by chance in 1 of 40"
        assert primary["contradicted"] == 0
    else:
        assert gains["supported"] <= 4
        assert primary["supported"] == 0
    if WORLDS[world] == 1:
        assert gains["supported"] > 25
        assert primary["supported"] >= 2
    if WORLDS[world] == -1:
        assert gains["contradicted"] > 40


@pytest.mark.thorough
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_keep_their_promise(design):
    for case in cases(design):
        rates = coverage(case)
        assert (rates.own if case.ours == 1 else rates.method) > 0.95 - NOISE, case
        assert max(family_errors(case)) < 0.06 + NOISE, case


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_streams_and_scores_keep_it_too(seeds):
    for case in streams(seeds):
        rates = coverage(case)
        assert (rates.own if seeds == 1 else rates.method) > 0.95 - NOISE, case
    for log_odds in (0.0, 4.0):
        assert score_coverage(seeds, 50, log_odds) > 0.95 - NOISE
