"""Where data is looked for, the errors for bad files, and what all tasks that answer questions share."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.core.errors import AceBenchError, ConfigError, DataError, RolloutFault
from ace_bench.tasks.catalog import make_task, task_class, task_names
from ace_bench.tasks.data import DataSettings, find_folder, read_rows
from ace_bench.tasks.finer import Finer
from tests.launching import ROOT
from tests.outcomes import outcomes_by_name

CONTEXT = 'Tags: A,B.\n1. What is best tag for entity "5" in sentence: "It was 5 .?"\nOutput US GAAP tags:'
ROW = {"context": CONTEXT, "target": "A"}
SAMPLES = ROOT / "ace_bench" / "tasks" / "samples"
USUAL = {"data_dir": None, "source": "auto", "sample_data": "pkg://ace_bench/tasks/samples/finer"}


def find(**settings):
    """Return the folder and its kind, or the error."""
    try:
        return find_folder("finer", DataSettings(**{**USUAL, "sample_allowed": False, **settings}))
    except AceBenchError as error:
        return str(error)


# Settings of a task without data of its own: the folder and its kind, or what is missing.
DATA = {
    "found": [
        {"sample_allowed": True},
        {"source": "sample"},
        {},
        {"source": "real", "sample_allowed": True},
        {"sample_data": None, "sample_allowed": True},
        {"source": "sample", "sample_data": None},
        {"source": "sample", "data_dir": "."},
        {"data_dir": "nowhere"},
        {"source": "sample", "sample_data": "samples/finer"},
        {"source": "sample", "sample_data": "pkg:///samples"},
        {"source": "sample", "sample_data": "pkg://nowhere/x"},
        {"source": "sample", "sample_data": "pkg://ace_bench/x"},
    ],
    # Lines of a file of rows that cannot be read.
    "rows": [
        b'{"a": "x"}\nab\xff',
        b'{"a": ',
        b"[1, 2]",
        b" \n",
        b'\n{"b": "x"}',
        b'{"a": 5}',
        b'{"a": " "}',
        b'{"a": "\\ud83d"}',
        b'{"a": "x", "id": "k"}\n\n{"a": "x", "id": "k"}',
        b'{"a": "x", "id": [1]}',
        b'{"a": "x", "id": true}',
        b'{"a": "x", "id": " "}',
        b'{"a": "x", "id": 1.5}',
        b'{"a": "x", "id": null}',
    ],
    # Changes of a row by which a task cannot grade it.
    "row": [
        ("finer", {"target": "A,B,C"}),
        ("finer", {"target": "A,,C,D"}),
        ("finer", {"context": "What is it?"}),
        ("formula", {"target": " many "}),
        ("ddxplus", {"PATHOLOGY": "Melancholy"}),
    ],
}


def test_data_is_found_and_refused_as_recorded(snapshot, data_folder, tmp_path):
    def read(content):
        (tmp_path / "a.jsonl").write_bytes(content)
        return read_rows(tmp_path / "a.jsonl", ("a",))

    def build(case):
        task, changes = case
        row = json.loads((SAMPLES / task / "test.jsonl").read_text().splitlines()[0])
        folder = data_folder([row, {**row, **changes}])
        return make_task(task, data_dir=str(folder), sample_allowed=False).samples("test")

    cases = {"found": lambda case: find(**case), "rows": read, "row": build}
    names = {str(tmp_path): "FOLDER", str(SAMPLES): "SAMPLES"}
    assert outcomes_by_name(cases, DATA, names) == snapshot
    with pytest.raises(DataError, match="line 1: broken JSON: "):
        read(b"[" * 100_000)


def test_location_order(tmp_path, monkeypatch):
    given, ambient, downloaded = (tmp_path / name / "finer" for name in ("given", "ambient", "downloaded"))
    for folder in (given, ambient, downloaded):
        folder.mkdir(parents=True)
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", downloaded.parent)
    assert find(sample_allowed=True) == (downloaded, "real")
    monkeypatch.setenv("ACE_BENCH_DATA", str(ambient.parent))
    assert find() == (ambient, "real")
    assert find(data_dir=str(given)) == (given, "real")
    monkeypatch.setenv("ACE_BENCH_DATA", str(tmp_path))
    assert find() == (downloaded, "real"), "a data root without this task's folder is passed over"
    monkeypatch.setenv("ACE_BENCH_DATA", str(tmp_path / "nowhere"))
    assert find() == f"ACE_BENCH_DATA={tmp_path}/nowhere is not a folder; correct the variable or unset it"


def test_a_package_of_somebody_else_ships_its_own_sample_set(data_folder, monkeypatch, tmp_path):
    folder = data_folder([ROW], "their_tasks/samples")
    (folder.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    task = make_task("finer", source="sample", sample_data="pkg://their_tasks/samples", sample_allowed=False)
    assert (task.source, len(task.samples("test"))) == ("sample", 1)


def test_rows_are_read_with_marks_and_line_ends_of_other_systems(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [{"a": "x"}, None, {"a": " ä", "b": 1}, {"a": "x", "id": 7}, {"a": "x", "id": " b "}]
    text = "\r\n".join("" if line is None else json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [(row.key, row.where, dict(row.fields)) for row in read_rows(path, ("a",))] == [
        (key, f"{path}, line {number}", {"a": text})
        for key, number, text in [("0001", 1, "x"), ("0003", 3, " ä"), ("7", 4, "x"), ("b", 5, "x")]
    ]


def test_a_task_reads_splits_when_asked_for_and_knows_no_others(data_folder):
    folder = data_folder([ROW] * 50)
    (folder / "train.jsonl").write_text("broken\n")
    task = make_task("finer", data_dir=str(folder), sample_allowed=False)
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(lambda _: task.samples("test")[0], range(8))
    assert all(sample is first for sample in others), "threads share one reading"
    with pytest.raises(DataError, match=r"train\.jsonl, line 1"):
        task.samples("train")
    with pytest.raises(ConfigError, match="has no split 'dev'; it has train, val, test"):
        task.samples("dev")
    foreign = make_task("formula", source="sample", sample_allowed=True).samples("test")[0]
    with pytest.raises(DataError, match="finer has no sample formula-test-0001 in its split 'test'"):
        task.open(foreign)
    with task.open(first) as session, pytest.raises(RolloutFault) as caught:
        session.step("look around")
    assert not session.finished
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "no_actions")
    (folder / "val.jsonl").unlink()
    with pytest.raises(DataError, match=r"lacks val\.jsonl; run `ace-bench data finer` or point task\.data_dir"):
        make_task("finer", data_dir=str(folder), sample_allowed=False)


def test_checksums_are_of_the_files(data_folder):
    folder = data_folder([ROW])
    before, same = (make_task("finer", data_dir=str(folder), sample_allowed=False).checksums for _ in range(2))
    (folder / "val.jsonl").write_text(json.dumps({**ROW, "target": "B"}))
    after = make_task("finer", data_dir=str(folder), sample_allowed=False).checksums
    assert before == same
    assert {name for name in before if before[name] != after[name]} == {"val.jsonl"}
    assert list(before) == ["train.jsonl", "val.jsonl", "test.jsonl"]


def test_tasks_are_made_from_their_files(tmp_path, monkeypatch):
    assert {"finer", "formula", "ddxplus", "qa"} <= set(task_names())
    assert task_class("finer") is Finer
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_text("defaults: [finer, _self_, {/agent: react}]\nsource: sample\n")
    (tmp_path / "task" / "none.yaml").write_text("source: real\n")
    monkeypatch.setenv("ACE_BENCH_CONFIG_DIRS", str(tmp_path))
    assert make_task("mine", source=None, sample_allowed=False).source == "sample"
    with pytest.raises(ConfigError, match=r"there is no task nope; choose one of .*, finer, formula, .*, mine, "):
        make_task("nope", sample_allowed=True)
    with pytest.raises(ConfigError, match=r"none\.yaml names no _target_ class"):
        task_class("none")


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
