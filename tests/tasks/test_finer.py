"""FiNER: splitting, grading and scoring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.finer import Finer, grade_labels, split_context
from tests.outcomes import outcomes_by_name

LINE, GOOD, DEP, INT = GOLDS = ("LineOfCredit", "Goodwill", "Depreciation", "InterestExpense")
GOLD = ",".join(GOLDS)


def grade_four(reply):
    """Official hits and lenient ones of four labels; both sides are in the grade."""
    grade = grade_labels(GOLD, reply)
    assert (grade.score, grade.correct, grade.gold) == (grade.detail["hits"] / 4, grade.detail["hits"] == 4, GOLD)
    return dict(grade.detail)


# Replies where the gold labels are LineOfCredit,Goodwill,Depreciation,InterestExpense: official hits, labels, lenient
# hits.
FINER = {
    "labels": [
        "LineOfCredit,Goodwill,Depreciation,InterestExpense",
        "lineofcredit, GOODWILL ,\tdepreciation\n,interestexpense ",
        "LineOfCredit,Goodwill,Depreciation,InterestExpense,Goodwill,more",
        "LineOfCredit,Goodwill,Depreciation",
        "LineOfCredit,,Depreciation,InterestExpense",
        "Answer: LineOfCredit,Goodwill,Depreciation,InterestExpense",
        "Line Of Credit,Goodwill,Depreciation,InterestExpense",
        "Goodwill,LineOfCredit,Depreciation,InterestExpense",
        "LineOfCredit",
        ",LineOfCredit,Goodwill,Depreciation,InterestExpense",
        None,
        "",
        " , , , ",
        "I do not know",
        "LineOfCredit\nGoodwill\nDepreciation\nInterestExpense",
        "LineOfCredit; Goodwill; Depreciation; InterestExpense",
        "1. LineOfCredit, 2. Goodwill, 3. Depreciation, 4. InterestExpense",
        "['LineOfCredit', 'Goodwill', 'Depreciation', 'InterestExpense']",
        "us-gaap:LineOfCredit,us-gaap:Goodwill,Depreciation,`InterestExpense`",
        "1) LineOfCredit,\n\n2) Goodwill,\n3) Depreciation,\nInterestExpense",
        "LineOfCredit,Goodwill,Depreciation,InterestExpense.",
        # Never evaluated.
        "__import__('os').abort(),Goodwill,Depreciation,InterestExpense",
        "ＬineOfCredit,Goodwill,Depreciation,InterestExpense",
        "LineOfCreditX,Goodwill,Depreciation,InterestExpense",
    ],
    # A numeric label and an answer: numbers are compared, and nothing is evaluated.
    "one label": [
        ("5", "5.0"),
        ("5", "$5"),
        ("5", "$ 5"),
        ("-0.50", "-.5"),
        ("1e3", "1000"),
        ("1e400", "1e400"),
        ("5", "2+3"),
        ("5", "abs(-5)"),
        ("5", "five"),
        ("5", "５"),
        ("5", "nan"),
        ("5", "0x5"),
        ("1e400", "1e401"),
        ("Goodwill", "5"),
    ],
}


def test_replies_are_graded_as_recorded(snapshot):
    one = lambda pair: grade_labels(*pair).correct  # noqa: E731
    assert outcomes_by_name({"labels": grade_four, "one label": one}, FINER) == snapshot
    hostile = ((f"\x00,\ud800,{DEP},{'9' * 10_000}", 1), ("(" * 5_000 + f",{GOOD}", 1))
    assert [(reply, grade_four(reply)["hits"]) for reply, _ in hostile] == [*hostile]


@given(
    st.text(alphabet="aB1.,;\n \"'`:()[]-us", max_size=60), st.lists(st.sampled_from(["Goodwill", "ab", "1", "a.b"]))
)
def test_lenience_never_takes_away(answer, labels):
    target = ",".join(labels) or "x"
    for text in (answer, target, f"{target},{answer}", f"{answer},{target}"):
        detail = grade_labels(target, text).detail
        assert detail["hits"] <= detail["hits_corrected"] <= detail["labels"]


def test_a_context_is_split_before_its_first_question_and_its_questions_are_counted(data_folder):
    context = "Tags: A1. B,\r\n  x \n1. First?\n2. Second 1. ?\n1. again"
    background, question = split_context(context, "here")
    assert background + question == context
    assert question.startswith("1. First?")
    folder = data_folder([{"context": context, "target": "A,B"}])
    rows = make_task("finer", data_dir=str(folder), sample_allowed=False)
    assert len(rows.samples("val")) == 1
    data_folder([{"context": context, "target": "A"}])
    with pytest.raises(DataError, match="field target answers 1 of 2 questions"):
        rows.samples("test")


def test_real_contexts_split_byte_for_byte(real_data):
    folder = real_data("finer")
    task = Finer(data_dir=folder, source="real", sample_data=None, sample_allowed=False)
    backgrounds = set()
    for split in task.splits:
        lines = (Path(folder) / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        for line, sample in zip(lines, task.samples(split), strict=True):
            assert sample.inputs["background"] + sample.inputs["question"] == json.loads(line)["context"]
            backgrounds.add(id(sample.inputs["background"]))
    assert len(backgrounds) == 1, "the shared text is one object"


def test_score_counts_labels_and_faults():
    task = make_task("finer", source="sample", sample_allowed=True)
    grades = [grade_labels(GOLD, answer) for answer in (GOLD, LINE, None, None)]
    assert task.score(grades) == {"accuracy": 31.25, "sample_accuracy": 25.0, "accuracy_corrected": 31.25}
    uneven = [grade_labels("a,b,c,d", "a,b,c,d"), grade_labels("a", "x")]
    assert task.score(uneven)["accuracy"] == 80.0, "every label weighs the same"
    assert task.score([]) == {}
