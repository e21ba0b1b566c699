"""FiNER: splitting, grading and scoring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import RolloutFault
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.finer import Finer, grade_labels, split_context

GOLD = "LineOfCredit,Goodwill,Depreciation,InterestExpense"


@pytest.fixture
def task() -> Finer:
    return make_task("finer", source="sample", sample_allowed=True)


@pytest.mark.parametrize(
    ("answer", "hits", "corrected"),
    [
        (GOLD, 4, 4),
        ("lineofcredit, GOODWILL ,\tdepreciation\n,interestexpense ", 4, 4),
        ("LineOfCredit,Goodwill,Depreciation,InterestExpense,Goodwill,more", 4, 4),
        ("LineOfCredit,Goodwill,Depreciation", 3, 3),
        ("LineOfCredit", 1, 1),
        ("Goodwill,LineOfCredit,Depreciation,InterestExpense", 2, 2),
        ("LineOfCredit,,Depreciation,InterestExpense", 3, 3),
        (",LineOfCredit,Goodwill,Depreciation,InterestExpense", 0, 0),
        (None, 0, 0),
        ("", 0, 0),
        (" , , , ", 0, 0),
        ("I do not know", 0, 0),
        # What the official grader does not forgive.
        ("LineOfCredit\nGoodwill\nDepreciation\nInterestExpense", 0, 4),
        ("LineOfCredit; Goodwill; Depreciation; InterestExpense", 0, 4),
        ("1. LineOfCredit, 2. Goodwill, 3. Depreciation, 4. InterestExpense", 0, 4),
        ("1) LineOfCredit\n\n2) Goodwill\n3) Depreciation\n4) InterestExpense\n", 0, 4),
        ("['LineOfCredit', 'Goodwill', 'Depreciation', 'InterestExpense']", 0, 4),
        ("us-gaap:LineOfCredit,us-gaap:Goodwill,Depreciation,`InterestExpense`", 1, 4),
        ("LineOfCredit,Goodwill,Depreciation,InterestExpense.", 3, 4),
        ("Answer: LineOfCredit,Goodwill,Depreciation,InterestExpense", 3, 3),
        ("Line Of Credit,Goodwill,Depreciation,InterestExpense", 3, 3),
        ("LineOfCreditX,Goodwill,Depreciation,InterestExpense", 3, 3),
        # Hostile or odd: graded, never run, never raised.
        ("__import__('os').abort(),Goodwill,Depreciation,InterestExpense", 3, 3),
        ("ＬineOfCredit,Goodwill,Depreciation,InterestExpense", 3, 3),
        ("\x00,\ud800,Depreciation," + "9" * 10_000, 1, 1),
        ("(" * 5_000 + ",Goodwill", 1, 1),
    ],
)
def test_table_of_answers(answer, hits, corrected):
    grade = grade_labels(GOLD, answer)
    assert grade.detail == {"hits": hits, "labels": 4, "hits_corrected": corrected}
    assert grade.score == hits / 4
    assert grade.correct == (hits == 4)
    assert grade.gold == GOLD
    assert grade.observed == ""


@pytest.mark.parametrize(
    ("target", "answer", "right"),
    [
        ("5", "5.0", True),
        ("5", "$5", True),
        ("5", "$ 5", True),
        ("-0.50", "-.5", True),
        ("1e3", "1000", True),
        ("5", "2+3", False),
        ("5", "abs(-5)", False),
        ("5", "five", False),
        ("5", "５", False),
        ("5", "nan", False),
        ("1e400", "1e401", False),
        ("1e400", "1e400", True),
        ("5", "0x5", False),
        ("Goodwill", "5", False),
    ],
)
def test_numeric_labels_compare_as_numbers_without_evaluation(target, answer, right):
    assert grade_labels(target, answer).correct is right


@given(
    st.text(alphabet="aB1.,;\n \"'`:()[]-us", max_size=60), st.lists(st.sampled_from(["Goodwill", "ab", "1", "a.b"]))
)
def test_lenience_never_takes_away(answer, labels):
    target = ",".join(labels) or "x"
    for text in (answer, target, f"{target},{answer}", f"{answer},{target}"):
        detail = grade_labels(target, text).detail
        assert detail["hits"] <= detail["hits_corrected"] <= detail["labels"]


def test_split_joins_to_the_same_text():
    context = "Tags: A1. B,\r\n  x \n1. First?\n2. Second 1. ?\n1. again"
    background, question = split_context(context, "here")
    assert background + question == context
    assert question.startswith("1. First?")


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


def test_golds_of_real_data_are_right(real_data):
    task = Finer(data_dir=real_data("finer"), source="auto", sample_data=None, sample_allowed=False)
    assert task.source == "real"
    for split in task.splits:
        grades = []
        for sample in task.samples(split):
            with task.open(sample) as session:
                grades.append(session.grade(session.grade(None).gold))
        assert set(task.score(grades).values()) == {100.0}


def test_score_counts_labels_and_faults(task):
    answers = [GOLD, "LineOfCredit", None, None]
    grades = [grade_labels(GOLD, answer) for answer in answers]
    assert task.score(grades) == {"accuracy": 31.25, "sample_accuracy": 25.0, "accuracy_corrected": 31.25}
    assert task.headline in task.score(grades)
    uneven = [grade_labels("a,b,c,d", "a,b,c,d"), grade_labels("a", "x")]
    assert task.score(uneven)["accuracy"] == 80.0, "every label weighs the same"
    assert task.score([]) == {}


def test_session_takes_no_actions(task):
    with task.open(task.samples("val")[0]) as session, pytest.raises(RolloutFault) as caught:
        session.step("look around")
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "no_actions")
