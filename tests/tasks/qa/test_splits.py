"""Splits of a user's data: by file, by column, by seeded shares; what is repeated is reported."""

import json
import random

import pytest

from ace_bench.core.errors import ConfigError, DataError
from tests.tasks.qa.making import ids, made


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows(count, **more):
    return [{"question": f"What is {n}?", "answer": n, "id": f"q{n}", **more} for n in range(count)]


def test_shares_do_not_depend_on_the_order_of_rows_and_have_their_sizes(tmp_path):
    first = ids(made(write(tmp_path / "a.jsonl", rows(100)), id="id"))
    shuffled = rows(100)
    random.Random(1).shuffle(shuffled)
    second = ids(made(write(tmp_path / "b.jsonl", shuffled), id="id"))
    assert {name: len(one) for name, one in first.items()} == {"train": 60, "val": 15, "test": 25}
    assert {name: set(one) for name, one in first.items()} == {name: set(one) for name, one in second.items()}
    assert second["test"] == [row["id"] for row in shuffled if row["id"] in first["test"]]
    assert ids(made(tmp_path / "a.jsonl", id="id", split_seed=1)) != first


def test_rows_that_are_added_leave_nearly_all_others_where_they_were(tmp_path):
    before = ids(made(write(tmp_path / "a.jsonl", rows(200)), id="id"))
    after = ids(made(write(tmp_path / "b.jsonl", rows(210)), id="id"))
    moved = sum(len(set(before[name]) - set(after[name])) for name in before)
    assert moved <= 20


def test_groups_and_repeated_questions_stay_together(tmp_path):
    made_of = [{**row, "who": f"customer {place // 7}"} for place, row in enumerate(rows(140))]
    task = made(write(tmp_path / "a.jsonl", made_of), id="id", group="who")
    owner = {row["id"]: row["who"] for row in made_of}
    groups = {name: {owner[one] for one in found} for name, found in ids(task).items()}
    assert not groups["train"] & groups["test"]
    assert not groups["train"] & groups["val"]
    (sample,) = task.samples("test")[:1]
    assert task.failing_grade(sample).group.startswith("customer ")

    twice = made(write(tmp_path / "b.jsonl", [*rows(50), *rows(50)]))
    assert not any(" are also in " in line for line in twice.repeats)
    assert any("repeat an earlier one of train" in line for line in twice.repeats)


def test_a_column_names_the_split_in_several_words(tmp_path):
    names = ["train", "Training", "dev", "validation", "TEST"]
    path = write(tmp_path / "a.jsonl", [{**row, "part": names[row["answer"]]} for row in rows(5)])
    assert ids(made(path, id="id", split="part")) == {"train": ["q0", "q1"], "val": ["q2", "q3"], "test": ["q4"]}
    write(path, [{**row, "part": "holdout"} for row in rows(5)])
    with pytest.raises(DataError, match=r"line 1: column part \(task.split\) says 'holdout', not one of dev, eval"):
        made(path, split="part")


def test_a_file_for_each_split_reports_questions_in_both(tmp_path):
    data = {"train": write(tmp_path / "a.jsonl", rows(3)), "test": write(tmp_path / "b.jsonl", rows(5)[2:])}
    task = made({name: str(path) for name, path in data.items()})
    assert task.splits == ("train", "test")
    said = []
    task.start(said.append)
    assert said[0] == "qa: 3 train, 3 test questions"
    assert said[1].startswith("qa: 1 of 3 questions of test are also in train, such as ")
    with pytest.raises(DataError, match=r"the split val holds no rows: give task.data a file for it"):
        task.samples("val")


def test_settings_of_splits_that_contradict_each_other(tmp_path):
    path = str(write(tmp_path / "a.jsonl", rows(3)))
    with pytest.raises(ConfigError, match=r"task.split=part needs one file for all splits"):
        made({"train": path}, split="part")
    with pytest.raises(ConfigError, match=r"data has no split holdout; write \{train: FILE, test: FILE\}"):
        made({"holdout": path})
    with pytest.raises(ConfigError, match="all shares are 0"):
        made(path, split_ratio={"train": 0, "val": 0, "test": 0})


def test_a_split_without_a_share_is_left_out(tmp_path):
    task = made(write(tmp_path / "a.jsonl", rows(10)), split_ratio={"train": 1, "val": 0, "test": 1})
    assert [len(one) for one in ids(task).values()] == [5, 5]
