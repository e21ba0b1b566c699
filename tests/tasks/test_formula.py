"""Formula: how a question is asked, grading and scoring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.formula import Formula, grade_number, question_of


@pytest.fixture
def task() -> Formula:
    return make_task("formula", source="sample", sample_allowed=True)


@pytest.mark.parametrize(
    ("target", "answer", "official", "corrected"),
    [
        ("5.0", "5", True, True),
        ("5.0", " 5.00\n", True, True),
        ("5.0", "+5", True, True),
        ("-80000000.0", "-80,000,000", True, True),
        ("1000.0", "1,0,0,0", True, True),
        ("1000.0", "1e3", True, True),
        ("1000.0", "1_000", True, True),
        ("0.0", "-0", True, True),
        ("5.0", "５", True, True),
        ("5.0", "٥", True, True),
        # The official grader reads nothing but a bare number.
        ("5.0", "$5.00", False, True),
        ("5.0", "5%", False, True),
        ("5.0", "The answer is 5.", False, True),
        ("5.0", "**5.0**", False, True),
        ("5.0", "5 USD", False, True),
        ("5000000.0", "$5 million", False, True),
        ("5000000.0", "5 Millions", False, True),
        ("5000000.0", "$5M", False, True),
        ("5000.0", "5k", False, True),
        ("5000000000.0", "5 bn", False, True),
        ("5000000000000.0", "5 trillion", False, True),
        ("-12.5", "-$12.50", False, True),
        ("-12.5", "$-12.50", False, True),
        ("-12.5", "−12.5", False, True),
        ("1250.5", "€1,250.50", False, True),
        # Rounding: the official grader wants equality.
        ("0.67", "0.6667", False, True),
        ("0.67", "0.67", True, True),
        ("0.67", "0.7", False, False),
        ("0.13", "0.125", False, True),
        ("0.12", "0.125", False, True),
        ("0.67", "0.6749", False, True),
        ("0.67", "0.676", False, False),
        ("12345678901.12", "12345678901.1234", False, True),
        # Wrong by both readings.
        ("15.0", "0.15", False, False),
        ("0.15", "15%", False, False),
        ("5.0", "5 million", False, False),
        ("5.0", "5M", False, False),
        ("5.0", "5 meters", False, True),
        ("5.0", "10/2 = 5", False, False),
        ("5.0", "4 or 5", False, False),
        ("5.0", "five", False, False),
        ("5.0", "--5", False, False),
        ("5.0", "", False, False),
        ("5.0", " ", False, False),
        ("5.0", ",", False, False),
        ("5.0", None, False, False),
        ("5.0", "nan", False, False),
        ("5.0", "inf", False, False),
        ("5.0", "-Infinity", False, False),
        ("5.0", "1e400", False, False),
        ("5.0", "9" * 100_000, False, False),
        ("5.0", "1 " * 100_000, False, False),
        ("5.0", "__import__('os').abort()", False, False),
        ("5.0", "\ud800\x00", False, False),
        ("5.0", "²", False, False),
    ],
)
def test_table_of_answers(target, answer, official, corrected):
    grade = grade_number(target, answer)
    assert grade.correct is official
    assert grade.score == float(official)
    assert grade.detail == {"hits": float(official), "labels": 1.0, "corrected": float(corrected)}
    assert (grade.gold, grade.observed) == (target, "")


@given(st.floats(-1e12, 1e12).map(lambda x: str(round(x, 2))), st.text(max_size=30))
def test_lenience_never_takes_away(target, answer):
    for text in (answer, target, f"${target}", f"{target}%"):
        grade = grade_number(target, text)
        assert grade.detail["hits"] <= grade.detail["corrected"]
    assert grade_number(target, target).correct
    assert grade_number(target, f"It is {target}").detail["corrected"] == 1.0


@pytest.mark.parametrize(
    ("context", "question"),
    [
        ('Use formula X. Question: "How much?". Answer:', "How much?"),
        ('Use formula X. Question:  "How much?" . Answer:', "How much?"),
        ('Question: "Two\nlines"\n. Answer:', "Two\nlines"),
        ("Question: **Firm**: How much?. Answer:", "**Firm**: How much?"),
        ('Question: "Odd ends.”. Answer:', '"Odd ends.”'),
        ('Question: Say "Question: x". Answer: y. Answer:', 'Say "Question: x"'),
    ],
)
def test_question_by_the_official_rule(context, question):
    assert question_of(context, "here") == question


@pytest.mark.parametrize("context", ["Question: no end", "How much?. Answer:", "Question: . Answer:", ""])
def test_question_that_is_not_there(context):
    with pytest.raises(DataError, match="here"):
        question_of(context, "here")


def test_formula_is_hidden_unless_asked_for(task):
    hinted = make_task("formula", source="sample", hint=True, sample_allowed=True)
    for plain, with_hint in zip(task.samples("train"), hinted.samples("train"), strict=True):
        assert plain.id == with_hint.id
        assert "Formula:" not in plain.inputs["question"]
        assert "Formula:" in with_hint.inputs["question"]
        assert plain.inputs["question"] in with_hint.inputs["question"]
    assert len({sample.inputs["background"] for sample in task.samples("train")}) == 1
    assert task.samples("train")[0].inputs["background"].endswith("\n"), "the question starts on a line of its own"


def test_real_questions_hold_no_formula_and_golds_are_right(real_data):
    task = Formula(data_dir=real_data("formula"), source="real", sample_data=None, hint=False, sample_allowed=False)
    for split in task.splits:
        grades = []
        for sample in task.samples(split):
            question = sample.inputs["question"]
            assert "Formula:" not in question
            assert "Answer:" not in question
            with task.open(sample) as session:
                grades.append(session.grade(session.grade(None).gold))
        assert set(task.score(grades).values()) == {100.0}


def test_score(task):
    grades = [grade_number("5.0", answer) for answer in ("5", "$5", None, "6")]
    assert task.score(grades) == {"accuracy": 25.0, "accuracy_corrected": 50.0}
    assert task.headline in task.score(grades)
    assert task.score([]) == {}
