from dataclasses import replace

import pytest

from ace_bench.core.method import Span, exactly
from ace_bench.core.types import NO_USAGE, Fault, Grade, Labels, Sample, Step, Usage, reveal

GRADE = Grade(score=0.5, correct=False, observed="3 rows", gold="SECRET", report="2 of 3 tests")


def test_usage_sums_stay_unknown_where_a_part_is_unknown():
    known = Usage(prompt=10, completion=2, cached=4, usd=0.5)
    assert NO_USAGE + known + known == Usage(prompt=20, completion=4, cached=8, usd=1.0)
    assert known + Usage(prompt=1, completion=1) == Usage(prompt=11, completion=3, cached=None, usd=None)


@pytest.mark.parametrize(
    ("labels", "correct", "gold", "verdict"),
    [(Labels.GOLD, False, "SECRET", True), (Labels.CORRECTNESS, False, None, True), (Labels.NONE, None, None, False)],
)
def test_reveal_shows_no_more_than_the_level_allows(labels, correct, gold, verdict):
    feedback = reveal(GRADE, labels)
    assert (feedback.correct, feedback.gold) == (correct, gold)
    assert "3 rows" in feedback.message
    assert ("correct" in feedback.message) is verdict
    assert ("2 of 3 tests" in feedback.message) is (labels is Labels.GOLD)
    assert "SECRET" not in feedback.message


@pytest.mark.parametrize("labels", Labels)
def test_nothing_is_said_of_an_answer_that_nobody_judged(labels):
    feedback = reveal(replace(GRADE, judged=False), labels)
    assert (feedback.correct, feedback.score, "correct" in feedback.message) == (None, None, False)


def test_a_step_knows_its_place_in_its_epoch_and_a_fault_whether_there_was_an_answer():
    step = Step(index=7, total=12, epoch=1, epochs=3)
    assert (step.epoch_total, step.epoch_index) == (4, 3)
    assert [Fault(owner=owner, kind="", message="").unanswered for owner in ("backbone", "model")] == [True, False]
    asked = Sample(id="a", split="train", inputs={"question": "long", "asked": "short"})
    assert (asked.asked, replace(asked, inputs={"question": "long"}).asked) == ("short", "long")


def test_spans_are_added_and_multiplied_end_by_end():
    assert exactly(2) + Span(1, 3) == Span(3, 5)
    assert Span(1, 3).times(Span(2, 4)) == Span(2, 12)
