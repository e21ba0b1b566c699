"""The page has all of Combee's differences that are measured, and a run takes the authors' rule."""

import pytest

from tests.simulation.combee import END, OURS, PAGE, START, VARIANTS, measure


def test_the_page_measures_each_difference():
    table = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    assert {*VARIANTS} <= {line.split("|")[1] for line in table.strip().splitlines()}


@pytest.mark.slow
def test_a_rule_of_the_authors_changes_who_is_asked():
    in_turn, ours = measure(VARIANTS["Curators"][0], 0), measure(OURS, 0)
    assert (ours.calls, in_turn.calls) == (19, 15), "the merger is not called"
