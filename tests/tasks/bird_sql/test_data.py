"""The forms of a data folder, the draws, the databases, and what samples show."""

from __future__ import annotations

import json

import pytest

from ace_bench.core.errors import AceBenchError, DataError
from tests.tasks.bird_sql.conftest import SCRIPT, build

QUESTIONS = [{"question": f"Question {n}?", "SQL": f"SELECT {n}"} for n in range(40)]
DRAW = {"train": 20, "val": 5, "seed": 42}


@pytest.fixture
def drawn(make, mini_dev):
    """Return a maker of a task that draws from questions in the form of mini-dev."""

    def task(questions=QUESTIONS, **settings):
        return make(data_dir=str(mini_dev(questions)), **{"mini_dev": DRAW, **settings})

    return task


def asked(task):
    return {
        split: [sample.inputs["question"].rpartition("User question: ")[2] for sample in task.samples(split)]
        for split in task.splits
    }


def test_mini_dev_is_drawn_into_disjoint_splits_that_never_change(drawn):
    rows = [*QUESTIONS, *QUESTIONS[:6]]
    splits = asked(drawn(rows))
    assert {split: len(set(texts)) for split, texts in splits.items()} == {"train": 20, "val": 5, "test": 15}
    assert sum(map(len, splits.values())) == 46, "a repeated question is kept, on one side"
    assert len(set().union(*splits.values())) == 40
    assert splits["val"] == [f"Question {n}?" for n in (0, 2, 4, 19, 35, 0, 2, 4)]
    assert asked(drawn(rows)) == splits
    assert set(asked(drawn(rows, mini_dev={**DRAW, "seed": 1}))["train"]) != set(splits["train"])


def test_stream_bench_gives_train_and_val_from_its_training_questions_unless_val_has_a_file(make, tmp_path):
    folder = tmp_path / "stream"
    build(folder / "databases" / "people" / "people.sqlite", SCRIPT)
    rows = [{**row, "db_id": "people", "evidence": "", "difficulty": ""} for row in QUESTIONS]
    test = [{**row, "question": f"Test {n}?", "difficulty": "simple"} for n, row in enumerate(rows[:8])]
    for name, part in (("train", rows), ("test", test)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    splits = asked(make(data_dir=str(folder), stream_bench={"train": 10, "val": 4, "seed": 42}))
    assert [len(texts) for texts in splits.values()] == [10, 4, 8]
    assert not set(splits["train"]) & set(splits["val"])
    assert all(text.startswith("Question") for text in splits["train"] + splits["val"])
    # What datasets.Dataset.shuffle(seed=42) of the library (5.2.0) makes of eight rows.
    assert splits["test"] == [f"Test {n}?" for n in (3, 4, 2, 7, 6, 1, 5, 0)]
    (folder / "val.jsonl").write_bytes((folder / "test.jsonl").read_bytes())
    splits = asked(make(data_dir=str(folder)))
    assert [len(texts) for texts in splits.values()] == [40, 8, 8]
    assert splits["test"] == [f"Test {n}?" for n in range(8)]


def test_what_a_sample_shows(drawn):
    rows = [{**row, "evidence": "three is 3"} for row in QUESTIONS]
    sample = drawn(rows).samples("test")[0]
    assert sample.inputs.keys() == {"background", "question", "schema", "asked"}
    assert "SQLite" in sample.inputs["background"]
    text = sample.inputs["question"]
    table = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, note)"
    assert text.startswith(f"Database schema:\n{table}\n")
    assert '\n\nCREATE TABLE "odd ""name" (x REAL)\n\nUser question: Question ' in text
    assert "by_age" not in text
    assert "three is 3" not in text
    shown = drawn(rows, evidence=True).samples("test")[0].inputs["question"]
    assert "(x REAL)\n\nExternal knowledge: three is 3\n\nUser question: Question " in shown


def test_the_run_is_identified_by_questions_and_databases(drawn, tmp_path, cache):
    before = drawn().checksums
    assert sorted(before) == ["mini_dev_sqlite.json", "people.sqlite"]
    (note,) = (cache / "bird_sql" / "checksums").iterdir()
    note.write_bytes(b"\xff broken")
    assert drawn().checksums == before, "a checksum that was noted wrongly is taken anew"
    database = tmp_path / "data" / "dev_databases" / "people" / "people.sqlite"
    database.write_bytes(database.read_bytes() + b"\0" * 4096)
    after = drawn().checksums
    assert after["people.sqlite"] != before["people.sqlite"]
    assert after["mini_dev_sqlite.json"] == before["mini_dev_sqlite.json"]


def test_a_sample_database_that_was_damaged_is_built_anew(make, cache):
    make()
    built = sorted((cache / "bird_sql" / "databases").glob("*.sqlite"))
    assert len(built) == 2
    for path in built:
        path.write_bytes(path.read_bytes()[:5000])
    task = make()
    for sample in task.samples("val"):
        with task.open(sample) as session:
            assert session.grade(session.grade(None).gold + " ").correct


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"SQL": ""}, "question 3: field SQL is empty"),
        ({"difficulty": "hard"}, "difficulty 'hard'"),
        ({"db_id": "../people"}, "not a database name"),
        ({"db_id": "nowhere"}, "lacks the database nowhere"),
        ({"evidence": 3}, "evidence must be a text"),
    ],
)
def test_bad_rows_are_named(change, named, drawn):
    with pytest.raises(DataError, match=named):
        drawn([*QUESTIONS[:2], {**QUESTIONS[2], **change}, *QUESTIONS[3:]])


def test_broken_files_are_named(drawn, make, tmp_path):
    task, folder = drawn(), tmp_path / "data"
    for content in (b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096):
        (folder / "dev_databases" / "people" / "people.sqlite").write_bytes(content)
        with pytest.raises(DataError, match=r"people.sqlite .*fetch it again"):
            task.samples("test")
    for content in (b"", b"[]", b"{}", b"[1]", b"\xff\xfe", b"[" * 100_000):
        (folder / "mini_dev_sqlite.json").write_bytes(content)
        with pytest.raises(DataError, match=r"mini_dev_sqlite\.json"):
            make(data_dir=str(folder))


def test_what_cannot_be_used_says_what_to_do(drawn, make, tmp_path, cache):
    with pytest.raises(AceBenchError, match=r"lacks train.jsonl; run .* or mini_dev_sqlite.json"):
        make(data_dir=str(tmp_path))
    with pytest.raises(AceBenchError, match=r"task.mini_dev draws 40 of 40 questions"):
        drawn(mini_dev={"train": 35, "val": 5, "seed": 0})
    cache.write_text("")
    with pytest.raises(AceBenchError, match="ACE_BENCH_CACHE"):
        make()


def test_the_sample_set_has_three_levels_and_no_query_twice(make):
    task = make()
    golds = [task.failing_grade(sample) for split in task.splits for sample in task.samples(split)]
    assert len(golds) == len({grade.gold for grade in golds}) == 140
    for level in ("simple", "moderate", "challenging"):
        assert sum(level in grade.detail for grade in golds) >= 20


def test_golds_of_mini_dev_are_right_and_the_official_loss_is_the_empty_ones(make, real_data):
    task = make(data_dir=real_data("bird_sql", "mini_dev_sqlite.json"), source="real")
    grades = []
    for split in task.splits:
        for sample in task.samples(split):
            with task.open(sample) as session:
                gold = session.grade(None).gold
                # A comment makes it another text, so that it is really run and not only looked up.
                grades.append(session.grade(f"{gold}\n-- prediction"))
    assert len(grades) == 500
    scores = task.score(grades)
    assert scores["execution_corrected"] == 100
    empty = sum("returned no rows" in grade.observed for grade in grades)
    assert scores["execution"] == pytest.approx(100 - empty / 5)
    assert 0 < empty < 100
