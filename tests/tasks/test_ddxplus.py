"""DDXPlus: reading answers, drawing splits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.ddxplus import CONDITIONS, NUMBERS, Ddxplus, answer_of, grade_diagnosis
from tests.outcomes import outcomes_by_name

HOSTILE = [
    "0" * 4_299 + "8.",
    "9" * 200_000,
    "9" * 200_000 + ".",
    "\x00\ud800²._",
    "acute " * 50_000,
    "__import__('os').abort()",
]


@pytest.fixture
def real(tmp_path):
    """Make the task of numbered patients in three files: (first, last + 1) by split."""

    def make(spans=None, **settings):
        for split, (first, end) in ({"train": (0, 30), "val": (100, 110), "test": (200, 240)} | (spans or {})).items():
            rows = ({"PATIENT_PROFILE": f"Patient {n} coughs.", "PATHOLOGY": "Anemia"} for n in range(first, end))
            (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return make_task("ddxplus", data_dir=str(tmp_path), sample_allowed=False, **settings)

    return make


def asked(task, split):
    return [int(sample.inputs["question"].split()[1]) for sample in task.samples(split)]


def grade_both(pair):
    """Right by the official reading, and the point of the lenient one."""
    number, reply = pair
    grade = grade_diagnosis(number, reply)
    assert (grade.score, grade.gold, grade.observed) == (grade.correct, answer_of(number), "")
    return grade.correct, grade.detail["lenient"]


# Replies where the diagnosis is 7. Anaphylaxis: right by the official reading, points of the lenient one.
DDXPLUS = {
    "7. Anaphylaxis": [
        "7. Anaphylaxis",
        "7.",
        "  7. ANAPHYLAXIS\n",
        "07. Anaphylaxis",
        "7.Anemia",
        "٧. Anaphylaxis",
        "Anaphylaxis",
        "**anaphylaxis**",
        "7) Anaphylaxis",
        "7",
        "(7)",
        "-1. Anaphylaxis?",
        "8. Anemia",
        "8",
        "77",
        "7 or 8",
        "Anaphylaxis or Anemia",
        "anaphylaxislike",
        None,
        "",
        "0.9 sure: 7. Anaphylaxis",
        "49. Anaphylaxis",
    ],
    # A condition and a reply: a name inside another is not that condition.
    "condition": [
        ("unstable angina", "Unstable angina"),
        ("stable angina", "Unstable angina"),
    ],
}


def test_replies_are_graded_as_recorded(snapshot):
    """Hostile ones are never run, never raise and are not slow."""
    cases = {"7. Anaphylaxis": lambda reply: grade_both((7, reply))}
    condition = {"condition": lambda pair: grade_both((NUMBERS[pair[0]], pair[1]))}
    assert outcomes_by_name(cases | condition, DDXPLUS) == snapshot
    assert {grade_both((7, reply)) for reply in HOSTILE} == {(False, 0)}
    assert grade_both((7, "0" * 4_299 + "7.")) == (True, 1)


@given(st.text(alphabet="0478.) anxphylsiAem\n", max_size=40), st.integers(0, 48))
def test_the_official_reading_is_the_first_number_before_a_full_stop_and_lenience_never_takes_away(answer, number):
    for text in (answer, f"{answer} {answer_of(number)}", f"{answer_of(number)} {answer}"):
        grade, first = grade_diagnosis(number, text), re.search(r"(\d+)\.", text)
        assert grade.correct is (first is not None and int(first[1]) == number)
        assert grade.score <= grade.detail["lenient"] <= 1


def test_every_condition_is_right_as_its_gold_and_by_its_name():
    for number, name in enumerate(CONDITIONS):
        assert grade_diagnosis(number, answer_of(number)).correct
        assert grade_diagnosis(number, f"It is {name}!").detail["lenient"] == 1
    assert list(CONDITIONS) == sorted(CONDITIONS)
    assert len(NUMBERS) == 49


def test_the_real_data_numbers_its_conditions_as_the_task_does(real_data):
    folder = Path(real_data("ddxplus", "release_conditions.json"))
    conditions = json.loads((folder / "release_conditions.json").read_text(encoding="utf-8"))
    assert tuple(sorted(condition["cond-name-eng"] for condition in conditions.values())) == CONDITIONS


def test_training_and_validation_are_drawn_from_both_files(real):
    task = real(train_size=25, val_size=12)
    train, val = asked(task, "train"), asked(task, "val")
    assert (len(train), len(val)) == (25, 12)
    assert len({*train, *val}) == 37
    assert {n >= 100 for n in train} == {True, False}
    assert asked(real(train_size=25, val_size=12), "train") == train
    assert asked(real(train_size=25, val_size=99), "val")[:12] == val
    assert set(asked(real(train_size=25, val_size=12, draw_seed=1), "train")) != set(train)
    identifiers = [sample.id for split in ("train", "val") for sample in task.samples(split)]
    assert len(set(identifiers)) == 37
    assert identifiers[0].startswith("ddxplus-train-")


def test_a_patient_of_both_files_is_drawn_once(real):
    task = real({"val": (20, 40)}, train_size=30, val_size=99)
    assert sorted(asked(task, "train") + asked(task, "val")) == list(range(40))


def test_null_leaves_splits_as_their_files_are(real, tmp_path):
    real()
    settings = {"train_size": None, "test_seed": None, "val_size": 1, "draw_seed": 0}
    data = {"data_dir": str(tmp_path), "source": "real", "sample_data": None, "sample_allowed": False}
    task = Ddxplus(**settings, **data)
    assert asked(task, "train") == list(range(30))
    assert asked(task, "val") == list(range(100, 110))
    assert asked(task, "test") == list(range(200, 240))


def test_too_few_rows_for_the_draw_name_the_fix(real):
    with pytest.raises(DataError, match=r"hold 40 different rows and task.train_size=40 .*train_size=null"):
        real(train_size=40).samples("train")


def test_test_split_has_the_order_of_streambench(real):
    # What datasets.Dataset.shuffle(seed=42) of the library (5.2.0) makes of ten rows.
    assert asked(real({"test": (200, 210)}), "test") == [200 + n for n in (5, 6, 0, 7, 3, 2, 4, 9, 1, 8)]


def test_score_counts_faults():
    task = make_task("ddxplus", source="sample", sample_allowed=True)
    grades = [grade_diagnosis(7, answer) for answer in ("7. Anaphylaxis", "Anaphylaxis", "8. Anemia", None)]
    assert task.score(grades) == {"accuracy": 25.0, "accuracy_lenient": 50.0}
    assert task.score([]) == {}
    assert not task.failing_grade(task.samples("test")[0]).correct
