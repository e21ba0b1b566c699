"""Where data is looked for, and the errors for bad files."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.finer import Finer

CONTEXT = 'Tags: A,B.\n1. What is best tag for entity "5" in sentence: "It was 5 .?"\nOutput US GAAP tags:'
ROW = {"context": CONTEXT, "target": "A"}


def finer(data_dir=None, source="auto", sample_allowed=False):
    given = None if data_dir is None else str(data_dir)
    return make_task("finer", data_dir=given, source=source, sample_allowed=sample_allowed)


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("source", ["auto", "real", "sample"])
def test_without_data_the_sample_set_is_used_where_it_is_allowed(source, allowed):
    if source == "sample" or (source == "auto" and allowed):
        assert finer(source=source, sample_allowed=allowed).source == "sample"
        return
    with pytest.raises(DataError, match="ace-bench data finer"):
        finer(source=source, sample_allowed=allowed)


def test_location_order(data_folder, monkeypatch, tmp_path):
    given, ambient, downloaded = (data_folder([{**ROW, "target": t}], f"{t}/finer") for t in ("Given", "Env", "Down"))
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", downloaded.parent)

    def gold(**settings):
        task = finer(sample_allowed=True, **settings)
        assert task.source == "real"
        with task.open(task.samples("test")[0]) as session:
            return session.grade(None).gold

    assert gold() == "Down"
    monkeypatch.setenv("ACE_BENCH_DATA", str(ambient.parent))
    assert gold() == "Env"
    assert gold(data_dir=given) == "Given"
    monkeypatch.setenv("ACE_BENCH_DATA", str(tmp_path))
    assert gold() == "Down", "a data root without this task's folder is passed over"


@pytest.mark.parametrize(
    ("sample_data", "message"),
    [
        ("samples/finer", "must name a folder in a package: pkg://PACKAGE/FOLDER"),
        ("pkg:///samples", "must name a folder in a package"),
        ("pkg://no_such_package/samples", "package no_such_package cannot be imported"),
        ("pkg://ace_rehearsal/samples/no_such_task", "package ace_rehearsal has no folder samples/no_such_task"),
    ],
)
def test_sample_data_that_is_not_there_is_an_error(sample_data, message):
    with pytest.raises(ConfigError, match=rf"^task\.sample_data=.*{message}"):
        make_task("finer", source="sample", sample_data=sample_data, sample_allowed=True)


def test_a_package_of_somebody_else_ships_its_own_sample_set(data_folder, monkeypatch, tmp_path):
    folder = data_folder([ROW], "their_tasks/samples")
    (folder.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    task = make_task("finer", source="sample", sample_data="pkg://their_tasks/samples", sample_allowed=False)
    assert (task.source, len(task.samples("test"))) == ("sample", 1)


@pytest.mark.parametrize(("source", "error"), [("sample", ConfigError), ("auto", DataError)])
def test_a_task_without_a_sample_set_never_uses_one(source, error):
    with pytest.raises(error, match=r"has none \(sample_data=null\)|ace-bench data"):
        Finer(data_dir=None, source=source, sample_data=None, sample_allowed=True)


def test_a_row_is_named_by_its_id_or_its_line_and_equal_rows_are_kept(data_folder):
    task = finer(data_folder([ROW, "", ROW, {**ROW, "id": 7}, {**ROW, "id": "b"}]))
    names = ["finer-test-0001", "finer-test-0003", "finer-test-7", "finer-test-b"]
    assert [sample.id for sample in task.samples("test")] == names
    with pytest.raises(DataError, match=r"test\.jsonl, line 3: field target is missing"):
        finer(data_folder([ROW, "", {"context": CONTEXT}])).samples("test")


def test_splits_are_read_when_asked_for(data_folder):
    folder = data_folder([ROW])
    (folder / "train.jsonl").write_text("broken\n")
    task = finer(folder)
    assert len(task.samples("test")) == 1
    with pytest.raises(DataError, match=r"train\.jsonl, line 1"):
        task.samples("train")


def test_unknown_split_and_foreign_sample(data_folder):
    task = finer(data_folder([ROW]))
    with pytest.raises(ConfigError, match="train, val, test"):
        task.samples("dev")
    foreign = make_task("formula", source="sample", sample_allowed=True).samples("test")[0]
    with pytest.raises(DataError, match="has no sample formula-test-0001"):
        task.open(foreign)


def test_a_session_without_an_environment_takes_no_actions(data_folder):
    task = finer(data_folder([ROW]))
    with task.open(task.samples("val")[0]) as session, pytest.raises(RolloutFault) as caught:
        session.step("look around")
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "no_actions")


def test_threads_share_one_reading(data_folder):
    task = finer(data_folder([ROW] * 50))
    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(lambda _: task.samples("test")[0], range(8)))
    assert all(sample is first[0] for sample in first)


def test_checksums_are_of_the_files(data_folder):
    folder = data_folder([ROW])
    before = finer(folder).checksums
    assert set(before) == {"train.jsonl", "val.jsonl", "test.jsonl"}
    (folder / "val.jsonl").write_text(json.dumps({**ROW, "target": "B"}))
    after = finer(folder).checksums
    assert before["train.jsonl"] == after["train.jsonl"]
    assert before["val.jsonl"] != after["val.jsonl"]


@pytest.mark.parametrize("name", ["finer", "formula"])
def test_golds_of_real_data_are_right(name, real_data):
    task = make_task(name, data_dir=real_data(name), sample_allowed=True)
    assert task.source == "real"
    for split in task.splits:
        grades = []
        for sample in task.samples(split):
            with task.open(sample) as session:
                grades.append(session.grade(session.grade(None).gold))
        assert set(task.score(grades).values()) == {100.0}
