"""The data check, on sample sets, good data and bad data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from ace_bench.cli import check
from ace_bench.cli.main import start
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import CONFIG_DIRS
from ace_bench.tasks.appworld.data import Catalogue
from ace_bench.tasks.appworld.engine import find_engine
from ace_bench.tasks.appworld.task import AppWorld
from ace_bench.tasks.data import RemoteFile
from ace_bench.tasks.formula import Formula


@pytest.mark.parametrize("task", ["ddxplus", "formula"])
def test_sample_sets_pass(task, capsys):
    assert start("check", [task, "--source", "sample"]) == 0
    out = capsys.readouterr().out
    assert "sample data" in out
    assert out.count("100.00") >= 6
    assert "quirk" in out


@pytest.mark.parametrize("words", [["--data-dir", "{}"], ["task.data_dir={}"]])
def test_says_whether_a_file_is_the_official_one(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    row = json.dumps({"context": 'Use formula X. Question: "How much?". Answer:', "target": "5.0"}) + "\n"
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.jsonl").write_text(row)
    official = RemoteFile(name="test.jsonl", url="", sha256=hashlib.sha256(row.encode()).hexdigest())
    monkeypatch.setattr(Formula, "downloads", (official,))
    assert start("check", ["formula", *(word.format(tmp_path) for word in words)]) == 0
    out = capsys.readouterr().out
    assert out.count("the official file") == 1
    assert out.count("no published file known") == 2


def test_a_file_of_ones_own_is_named_with_the_balance_of_its_answers(tmp_path, capsys, monkeypatch):
    rows = [f"q{number},{'yes' if number % 4 else 'no'},train" for number in range(8)]
    rows += [f"v{number},yes,{split}" for split in ("val", "test") for number in range(4)]
    (tmp_path / "mine.csv").write_text("\n".join(["question,answer,split", *rows]))
    words = [f"task.data={tmp_path}/mine.csv", "task.question=question", "task.answer=answer", "task.split=split"]
    assert start("check", ["task=qa", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 different ones: yes 6, no 2 always answering 'yes' is right on 75.0%" in said
    assert "mine.csv, your own" in said
    presets = tmp_path / "experiment"
    presets.mkdir()
    settings = "\n".join(f"  {word.removeprefix('task.').replace('=', ': ', 1)}" for word in words)
    (presets / "mine.yaml").write_text(f"# @package _global_\ndefaults: [override /task: qa]\ntask:\n{settings}\n")
    monkeypatch.setenv(CONFIG_DIRS, str(tmp_path))
    assert start("check", ["experiment=mine", "task.source=auto"]) == 0
    assert " ".join(capsys.readouterr().out.split()) == said


@pytest.mark.parametrize("reason", [None, "it returns no row"])
def test_gold_that_is_graded_as_wrong_fails_without_a_known_reason(reason, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    grade = check.grade_golds

    def without_first(task, samples):
        graded = grade(task, samples)
        sample, _ = graded[0]
        with task.open(sample) as session:
            return [(sample, session.grade(None)), *graded[1:]]

    monkeypatch.setattr(check, "grade_golds", without_first)
    monkeypatch.setattr(Formula, "expected_loss", lambda *_: reason, raising=False)
    assert start("check", ["formula", "--source", "sample"]) == (1 if reason is None else 0)
    said = "the gold answer is graded as wrong" + ("" if reason is None else f", as expected: {reason}")
    lines = [line for line in capsys.readouterr().out.splitlines() if "graded as wrong" in line]
    assert lines == [f"formula-{split}-0001: {said}" for split in ("train", "val", "test")]


@pytest.fixture
def one_each(monkeypatch):
    """AppWorld's mini-world, one sample a split: an episode takes a second."""
    try:
        find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    read = AppWorld.samples
    monkeypatch.setattr(AppWorld, "samples", lambda task, split: read(task, split)[:1])


@pytest.mark.thorough
@pytest.mark.usefixtures("one_warm_engine")
def test_reference_solutions_of_tasks_for_agents_are_run(one_each, capsys):
    assert start("check", ["appworld", "--source", "sample"]) == 0
    assert capsys.readouterr().out.count("tgc 100.00") == 3


@pytest.mark.slow
@pytest.mark.usefixtures("one_warm_engine")
def test_hidden_solutions_are_left_out_and_wrong_ones_told(one_each, capsys, monkeypatch):
    truth = Catalogue.truth

    def changed(catalogue, task):
        hidden = task in catalogue.ids("test_normal")
        return replace(truth(catalogue, task), solution="" if hidden else "def solution(apis, requester): pass")

    monkeypatch.setattr(Catalogue, "truth", changed)
    monkeypatch.setenv("COLUMNS", "200")
    assert start("check", ["appworld", "--source", "sample"]) == 1
    out = capsys.readouterr().out
    assert "1 without a reference" in out
    assert out.count("the gold answer is graded as wrong") == 2
