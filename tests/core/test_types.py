from dataclasses import replace

import pytest

from ace_bench.core.backbones import answers_samples, backbone_name
from ace_bench.core.method import Span, exactly
from ace_bench.core.types import (
    NO_USAGE,
    Attempt,
    Completion,
    Fault,
    Feedback,
    GeneratorSpec,
    Grade,
    Labels,
    Sample,
    Step,
    Usage,
    reveal,
)

GRADE = Grade(score=0.5, correct=False, observed="3 rows", gold="SECRET", report="2 of 3 tests")


def test_usage_sums_stay_unknown_where_a_part_is_unknown():
    known = Usage(prompt=10, completion=2, cached=4, usd=0.5)
    assert NO_USAGE + known + known == Usage(prompt=20, completion=4, cached=8, usd=1.0)
    assert known + Usage(prompt=1, completion=1) == Usage(prompt=11, completion=3, cached=None, usd=None)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (
            Labels.GOLD,
            Feedback(
                correct=False,
                message="3 rows\nThe answer is not correct.\n2 of 3 tests",
                gold="SECRET",
                score=0.5,
                report="2 of 3 tests",
            ),
        ),
        (
            Labels.CORRECTNESS,
            Feedback(correct=False, message="3 rows\nThe answer is not correct.", gold=None, score=0.0),
        ),
        (Labels.NONE, Feedback(correct=None, message="3 rows", gold=None)),
    ],
)
def test_reveal_shows_no_more_than_the_level_allows(labels, shown):
    assert reveal(GRADE, labels) == shown


@pytest.mark.parametrize("labels", Labels)
def test_nothing_is_said_of_an_answer_that_nobody_judged(labels):
    feedback = reveal(replace(GRADE, judged=False), labels)
    assert (feedback.correct, feedback.score, "correct" in feedback.message) == (None, None, False)


def test_what_is_not_said_of_a_call_or_an_attempt_is_nothing():
    said = Completion(text="", usage=NO_USAGE, seconds=0.0)
    assert (said.waited, said.retries, said.replayed, said.cut, said.asked_again) == (0, 0, False, False, 0)
    attempt = Attempt(answer=None)
    assert (attempt.dropped, attempt.trajectory, attempt.counters, attempt.ended) == (0, (), {}, None)
    assert GeneratorSpec(template="t", answer_format="text").code_runs == 0


def test_a_step_knows_its_place_in_its_epoch_and_a_fault_whether_there_was_an_answer():
    step = Step(index=7, total=12, epoch=1, epochs=3)
    assert (step.epoch_total, step.epoch_index) == (4, 3)
    assert Step(index=7, total=12, epoch=0).epoch_total == 12
    assert [Fault(owner=owner, kind="", message="").unanswered for owner in ("backbone", "model")] == [True, False]
    asked = Sample(id="a", split="train", inputs={"question": "long", "asked": "short"})
    assert (asked.asked, replace(asked, inputs={"question": "long"}).asked) == ("short", "long")


def test_spans_are_added_and_multiplied_end_by_end():
    assert exactly(2) + Span(1, 3) == Span(3, 5)
    assert Span(1, 3).times(Span(2, 4)) == Span(2, 12)


@pytest.mark.parametrize(
    ("option", "model", "name"),
    [
        ("vllm", "org/Model/", "Model"),
        ("openai_compatible", "m", "m"),
        ("llama_cpp", None, "llama_cpp"),
        ("gpt_5_1", "gpt-5.1", "gpt_5_1"),
    ],
)
def test_a_backbone_is_called_by_its_model_where_its_option_takes_any(option, model, name):
    assert backbone_name(option, model) == name


def test_the_generator_and_those_that_take_turns_with_it_answer_samples():
    roles = ("generator", "generator_2", "generators", "judge")
    assert [role for role in roles if answers_samples(role)] == ["generator", "generator_2"]
