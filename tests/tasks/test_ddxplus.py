"""DDXPlus: reading answers, drawing splits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.tasks.ddxplus import CONDITIONS, NUMBERS, Ddxplus, answer_of, grade_diagnosis

SETTINGS = {
    "data_dir": None,
    "source": "sample",
    "sample_data": "pkg://ace_rehearsal/samples/ddxplus",
    "train_size": 1000,
    "val_size": 372,
    "draw_seed": 42,
    "test_seed": 42,
    "sample_allowed": True,
}


def ddxplus(**settings):
    return Ddxplus(**SETTINGS | settings)


def real(folder, **settings):
    return ddxplus(data_dir=str(folder), source="auto", **settings)


@pytest.fixture
def patients(tmp_path):
    """Write numbered patients into the three files: (first, last + 1) by split."""

    def write(**spans):
        for split, (first, end) in ({"train": (0, 30), "val": (100, 110), "test": (200, 240)} | spans).items():
            rows = ({"PATIENT_PROFILE": f"Patient {n} coughs.", "PATHOLOGY": "Anemia"} for n in range(first, end))
            (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path

    return write


def asked(task, split):
    return [int(sample.inputs["question"].split()[1]) for sample in task.samples(split)]


@pytest.mark.parametrize(
    ("answer", "official", "lenient"),
    [
        ("7. Anaphylaxis", True, True),
        ("7.", True, True),
        ("  7. ANAPHYLAXIS\n", True, True),
        ("07. Anaphylaxis", True, True),
        ("Diagnosis: 7. Anaphylaxis, rather than 8. Anemia", True, True),
        ("7.Anemia", True, True),
        ("٧. Anaphylaxis", True, True),
        # What the official reading does not forgive.
        ("Anaphylaxis", False, True),
        ("**anaphylaxis**", False, True),
        ("7) Anaphylaxis", False, True),
        ("7", False, True),
        ("(7)", False, True),
        ("0.9 sure: 7. Anaphylaxis", False, True),
        ("49. Anaphylaxis", False, True),
        ("8. Anemia or 7. Anaphylaxis", False, False),
        ("Anaphylaxis or Anemia", False, False),
        ("8. Anemia", False, False),
        ("8", False, False),
        ("77", False, False),
        ("7 or 8", False, False),
        ("anaphylaxislike", False, False),
        ("-1. Anaphylaxis?", False, True),
        (None, False, False),
        ("", False, False),
        # Hostile: graded, never run, never raised, never slow.
        ("9" * 200_000, False, False),
        ("9" * 200_000 + ".", False, False),
        ("0" * 4_299 + "7.", True, True),
        ("\x00\ud800²._", False, False),
        ("acute " * 50_000, False, False),
        ("__import__('os').abort()", False, False),
    ],
)
def test_table_of_answers(answer, official, lenient):
    grade = grade_diagnosis(7, answer)
    assert (grade.correct, grade.score, grade.detail) == (official, float(official), {"lenient": float(lenient)})
    assert grade.gold == "7. Anaphylaxis"
    assert grade.observed == ""


def test_a_name_inside_another_is_not_that_condition():
    assert grade_diagnosis(NUMBERS["unstable angina"], "Unstable angina").detail["lenient"] == 1
    assert grade_diagnosis(NUMBERS["stable angina"], "Unstable angina").detail["lenient"] == 0


@given(st.text(alphabet="0478.) anxphylsiAem\n", max_size=40), st.integers(0, 48))
def test_lenience_never_takes_away(answer, number):
    for text in (answer, f"{answer} {answer_of(number)}", f"{answer_of(number)} {answer}"):
        grade = grade_diagnosis(number, text)
        assert grade.score <= grade.detail["lenient"] <= 1


def test_every_condition_is_right_as_its_gold_and_by_its_name():
    for number, name in enumerate(CONDITIONS):
        assert grade_diagnosis(number, answer_of(number)).correct
        assert grade_diagnosis(number, f"It is {name}!").detail["lenient"] == 1
    assert list(CONDITIONS) == sorted(CONDITIONS)
    assert len(NUMBERS) == 49


def test_training_and_validation_are_drawn_from_both_files(patients):
    folder = patients()
    task = real(folder, train_size=25, val_size=12)
    train, val = asked(task, "train"), asked(task, "val")
    assert (len(train), len(val)) == (25, 12)
    assert len({*train, *val}) == 37
    assert {n >= 100 for n in train} == {True, False}
    assert asked(real(folder, train_size=25, val_size=12), "train") == train
    assert asked(real(folder, train_size=25, val_size=99), "val")[:12] == val
    assert set(asked(real(folder, train_size=25, val_size=12, draw_seed=1), "train")) != set(train)
    identifiers = [sample.id for split in ("train", "val") for sample in task.samples(split)]
    assert len(set(identifiers)) == 37
    assert identifiers[0].startswith("ddxplus-train-")


def test_a_patient_of_both_files_is_drawn_once(patients):
    task = real(patients(val=(20, 40)), train_size=30, val_size=99)
    assert sorted(asked(task, "train") + asked(task, "val")) == list(range(40))


def test_null_leaves_splits_as_their_files_are(patients):
    task = real(patients(), train_size=None, test_seed=None)
    assert asked(task, "train") == list(range(30))
    assert asked(task, "val") == list(range(100, 110))
    assert asked(task, "test") == list(range(200, 240))


def test_too_few_rows_for_the_draw_name_the_mend(patients):
    with pytest.raises(DataError, match=r"hold 40 different rows and task.train_size=40 .*train_size=null"):
        real(patients(), train_size=40).samples("train")


def test_test_split_has_the_order_of_streambench(patients):
    # What datasets.Dataset.shuffle(seed=42) of the library (5.2.0) makes of ten rows.
    assert asked(real(patients(test=(200, 210))), "test") == [200 + n for n in (5, 6, 0, 7, 3, 2, 4, 9, 1, 8)]


def test_score_counts_faults():
    task = ddxplus()
    grades = [grade_diagnosis(7, answer) for answer in ("7. Anaphylaxis", "Anaphylaxis", "8. Anemia", None)]
    assert task.score(grades) == {"accuracy": 25.0, "accuracy_lenient": 50.0}
    assert task.headline in task.score(grades)
    assert task.score([]) == {}
    assert not task.failing_grade(task.samples("test")[0]).correct
