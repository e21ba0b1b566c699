"""Formula: how a question is asked, grading and scoring."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.formula import Formula, grade_number, question_of
from tests.cases import check_cases

HOSTILE = ("1e400", "9" * 100_000, "1 " * 100_000, "__import__('os').abort()", "\ud800\x00", "²")


def grade_both(pair):
    """Official and lenient points."""
    target, answer = pair
    grade = grade_number(target, answer)
    hits = grade.detail["hits"]
    assert (grade.correct, grade.score, grade.gold, grade.observed) == (hits == 1, hits, target, "")
    return hits, grade.detail["corrected"]


def test_answers_are_graded_and_questions_found_as_the_file_says():
    cases = {"numbers": grade_both, "question": lambda context: question_of(context, "here")}
    check_cases(Path(__file__).with_name("formula.txt"), cases)
    assert {grade_both(("5.0", answer)) for answer in HOSTILE} == {(0, 0)}


@given(st.floats(-1e12, 1e12).map(lambda x: str(round(x, 2))), st.text(max_size=30))
def test_lenience_never_takes_away(target, answer):
    for text in (answer, target, f"${target}", f"{target}%"):
        grade = grade_number(target, text)
        assert grade.detail["hits"] <= grade.detail["corrected"]
    assert grade_number(target, target).correct
    assert grade_number(target, f"It is {target}").detail["corrected"] == 1.0


def test_formula_is_hidden_unless_asked_for():
    plain, hinted = (make_task("formula", source="sample", hint=hint, sample_allowed=True) for hint in (False, True))
    for one, with_hint in zip(plain.samples("train"), hinted.samples("train"), strict=True):
        assert one.id == with_hint.id
        assert "Formula:" not in one.inputs["question"]
        assert "Formula:" in with_hint.inputs["question"]
        assert one.inputs["question"] in with_hint.inputs["question"]
    (background,) = {sample.inputs["background"] for sample in plain.samples("train")}
    assert background.endswith("\n"), "the question starts on a line of its own"


def test_real_questions_hold_no_formula(real_data):
    task = Formula(data_dir=real_data("formula"), source="real", sample_data=None, hint=False, sample_allowed=False)
    asked = [sample.inputs["question"] for split in task.splits for sample in task.samples(split)]
    assert not any("Formula:" in question or "Answer:" in question for question in asked)


def test_score():
    task = make_task("formula", source="sample", sample_allowed=True)
    grades = [grade_number("5.0", answer) for answer in ("5", "$5", None, "6")]
    assert task.score(grades) == {"accuracy": 25.0, "accuracy_corrected": 50.0}
    assert task.score([]) == {}
