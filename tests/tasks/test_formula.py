"""Formula: how a question is asked, grading and scoring."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.formula import Formula, grade_number, question_of
from tests.outcomes import outcomes_by_name

HOSTILE = ("1e400", "9" * 100_000, "1 " * 100_000, "__import__('os').abort()", "\ud800\x00", "²")


def grade_both(pair):
    """Official and lenient points."""
    target, answer = pair
    grade = grade_number(target, answer)
    hits = grade.detail["hits"]
    assert (grade.correct, grade.score, grade.gold, grade.observed) == (hits == 1, hits, target, "")
    return hits, grade.detail["corrected"]


# A target and an answer: the official grader reads a bare number alone, the lenient one also among words.
FORMULA = {
    "numbers": [
        ("5.0", "5"),
        ("5.0", " 5.00\n"),
        ("5.0", "+5"),
        ("5.0", "５"),
        ("5.0", "٥"),
        ("1000.0", "1,0,0,0"),
        ("1000.0", "1e3"),
        ("1000.0", "1_000"),
        ("-80000000.0", "-80,000,000"),
        ("0.0", "-0"),
        ("0.67", "0.67"),
        ("5.0", "$5.00"),
        ("5.0", "5%"),
        ("5.0", "The answer is 5."),
        ("5.0", "**5.0**"),
        ("5.0", "5 USD"),
        ("5.0", "5 meters"),
        ("5000.0", "5k"),
        ("5000.0", "5 thousand"),
        ("5000000.0", "$5 million"),
        ("5000000.0", "5 Millions"),
        ("5000000.0", "$5M"),
        ("5000000.0", "5mn"),
        ("5000000000.0", "5 bn"),
        ("5000000000.0", "5 Billion"),
        ("5000000000.0", "5b"),
        ("5000000000000.0", "5 trillion"),
        ("5000000000000.0", "5 tn"),
        ("-12.5", "-$12.50"),
        ("-12.5", "$-12.50"),
        ("-12.5", "−12.5"),
        ("1250.5", "€1,250.50"),
        ("0.67", "0.6667"),
        ("0.67", "0.6749"),
        ("0.13", "0.125"),
        ("0.12", "0.125"),
        ("12345678901.12", "12345678901.1234"),
        ("15.0", "0.15"),
        ("0.15", "15%"),
        ("0.67", "0.7"),
        ("0.67", "0.676"),
        ("5.0", "5 million"),
        ("5.0", "5M"),
        ("5.0", "10/2 = 5"),
        ("5.0", "4 or 5"),
        ("5.0", "five"),
        ("5.0", "--5"),
        ("5.0", ""),
        ("5.0", " "),
        ("5.0", ","),
        ("5.0", None),
        ("5.0", "nan"),
        ("5.0", "inf"),
        ("5.0", "-Infinity"),
    ],
    # The question in a context.
    "question": [
        'Use formula X. Question:  "How much?" . Answer:',
        'Question: "Two\nlines"\n. Answer:',
        "Question: **Firm**: How much?. Answer:",
        'Question: "Odd ends.”. Answer:',
        'Question: Say "Question: x". Answer: y. Answer:',
        "Question: no end",
        "How much?. Answer:",
        "Question: . Answer:",
        "",
    ],
}


def test_answers_are_graded_and_questions_found_as_recorded(snapshot):
    cases = {"numbers": grade_both, "question": lambda context: question_of(context, "here")}
    assert outcomes_by_name(cases, FORMULA) == snapshot
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
