"""Splits of a user's data: by file, by column, by seeded shares; what is repeated is reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import DataError
from ace_bench.tasks.data import SPLITS
from ace_bench.tasks.qa.columns import Columns, Question
from ace_bench.tasks.qa.loading import Shares, by_shares, sample_set
from tests.outcomes import outcomes_by_name
from tests.tasks.qa.making import ids, made, write


def rows(count, **more):
    return [{"question": f"What is {n}?", "answer": n, "id": f"q{n}", **more} for n in range(count)]


@st.composite
def questions(draw):
    kinds = draw(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["", "", "a", "b"])), max_size=40))
    shared = {"answer": 1, "choices": (), "split": ""}
    return [Question(key=str(n), where=f"row {n}", text=str(t), group=g, **shared) for n, (t, g) in enumerate(kinds)]


@given(questions(), st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=3, max_size=3).filter(any), st.randoms())
def test_shares_keep_what_belongs_together_in_one_split_whatever_the_order_of_rows(questions, shares, random):
    """Groups and repeated questions stay together, and a split keeps the order of its rows."""
    shuffled = random.sample(questions, len(questions))
    drawn, again = (
        by_shares(some, shares=Shares(**dict(zip(SPLITS, shares, strict=True))), seed=0)
        for some in (questions, shuffled)
    )
    split_of = {one.key: split for split, some in drawn.items() for one in some}
    assert sorted(split_of) == sorted(one.key for one in questions)
    units = {(one.group or one.text, split_of[one.key]) for one in questions}
    assert len(units) == len({unit for unit, _ in units})
    assert {split: [one for one in shuffled if split_of[one.key] == split] for split in SPLITS} == again
    assert not any(drawn[split] for split, share in zip(SPLITS, shares, strict=True) if not share)


def test_shares_have_their_sizes_and_rows_that_are_added_move_few_others(tmp_path):
    first = ids(made(write(tmp_path / "a.jsonl", rows(200)), id="id"))
    assert {name: len(one) for name, one in first.items()} == {"train": 120, "val": 30, "test": 50}
    assert ids(made(tmp_path / "a.jsonl", id="id", split_seed=1)) != first
    after = ids(made(write(tmp_path / "b.jsonl", rows(210)), id="id"))
    assert sum(len(set(first[name]) - set(after[name])) for name in first) <= 20


def test_a_group_is_named_by_its_column_and_what_is_repeated_is_reported(tmp_path):
    shares = {"train": 0.4, "val": 0, "test": 0.6}
    task = made(write(tmp_path / "a.jsonl", rows(9, who="customer 1")), group="who", split_ratio=shares)
    assert task.splits == ("test",), "a group goes where its middle is"
    assert task.failing_grade(task.samples("test")[0]).group == "customer 1"
    twice = made(write(tmp_path / "b.jsonl", [*rows(50), *rows(50)]))
    assert not any(" are also in " in line for line in twice.repeats)
    assert any("repeat an earlier one of train" in line for line in twice.repeats)


def test_a_column_names_the_split_in_several_words(tmp_path):
    names = ["train", "Training", "dev", "validation", "TEST"]
    path = write(tmp_path / "a.jsonl", [{**row, "part": names[row["answer"]]} for row in rows(5)])
    assert ids(made(path, id="id", split="part")) == {"train": ["q0", "q1"], "val": ["q2", "q3"], "test": ["q4"]}
    write(path, rows(5, part="holdout"))
    with pytest.raises(DataError, match=r"line 1: column part \(task.split\) says 'holdout', not one of dev, eval"):
        made(path, split="part")


def test_a_file_for_each_split_reports_questions_in_both(tmp_path):
    data = {"train": write(tmp_path / "a.jsonl", rows(3)), "test": write(tmp_path / "b.jsonl", rows(5)[2:])}
    task = made({name: str(path) for name, path in data.items()})
    assert (task.splits, task.source) == (("train", "test"), "real")
    said = []
    task.start(said.append)
    assert said[0] == "qa: 3 train, 3 test questions"
    assert said[1].startswith("qa: 1 of 3 questions of test are also in train, such as ")
    with pytest.raises(DataError, match=r"the split val holds no rows: give task.data a file for it"):
        task.samples("val")


# Settings of splits and columns that cannot work.
WRONG_SPLITS = {
    "task": [
        {"data": {"train": "FILE"}, "split": "part"},
        {"data": {"holdout": "FILE"}},
        {"data": {}},
        {"split_ratio": {"train": 0, "val": 0, "test": 0}},
        {"question": None},
    ],
    # Source, whether the sample set is allowed, and columns: without data the sample set is read where that is meant.
    "sample set": [
        ("auto", True, {}),
        ("sample", False, {}),
        ("sample", False, {"question": "message", "answer": "customer", "split": "split"}),
        ("auto", False, {}),
        ("real", True, {}),
        ("auto", True, {"question": "message", "answer": "team", "split": "split"}),
        ("sample", True, {"question": "message", "answer": None, "split": "split"}),
    ],
}


def test_settings_are_taken_and_refused_as_recorded(snapshot, tmp_path):
    path = str(write(tmp_path / "a.jsonl", rows(3)))

    def build(settings):
        data = settings.get("data", path)
        given = dict.fromkeys(data, path) if isinstance(data, dict) else data
        return made(given, **{name: value for name, value in settings.items() if name != "data"})

    def find(case):
        source, allowed, columns = case
        named = Columns(**{"question": None, "answer": None, **columns})
        loaded = sample_set(named, source=source, sample_data="pkg://ace_bench/tasks/samples/qa", allowed=allowed)
        return loaded.questions["train"][0].answer, str(loaded.instruction)[:18]

    assert outcomes_by_name({"task": build, "sample set": find}, WRONG_SPLITS, {str(tmp_path): "FOLDER"}) == snapshot
