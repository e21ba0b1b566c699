"""The task without its engine: samples, data roots, settings, metrics."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError, DataError
from ace_bench.tasks.appworld import engine as engine_module
from ace_bench.tasks.appworld.data import (
    Catalogue,
    Truth,
    builder_digest,
    check_path,
    close_to_others,
    copy_visible,
    sample_root,
)
from ace_bench.tasks.appworld.engine import FACTS, find_engine
from ace_bench.tasks.appworld.pool import Verdict, metrics
from ace_bench.tasks.appworld.session import Assignment
from ace_bench.tasks.data import sample_folder
from tests.tasks.appworld.conftest import make

SPECS = {
    "instruction": "Do it.",
    "supervisor": {"first_name": "A", "last_name": "B", "email": "a@b.example", "phone_number": "1"},
    "datetime": "2023-05-18T12:00:00",
    "db_version": "0.1.0",
}


@pytest.fixture
def fake_root(tmp_path):
    """A root of the right shape with one task a dataset, for tests that never start the engine."""
    root = tmp_path / "root"
    data = root / "data"
    for number, name in enumerate(("train", "dev", "test_normal", "test_challenge"), start=1):
        key = f"abc{number}_1"
        truth = data / "tasks" / key / "ground_truth"
        truth.mkdir(parents=True)
        (data / "tasks" / key / "specs.json").write_text(json.dumps(SPECS))
        (data / "tasks" / key / "dbs").mkdir()
        (data / "tasks" / key / "dbs" / "spotify.jsonl").write_text("")
        (truth / "metadata.json").write_text('{"difficulty": 2, "mode": "full"}')
        (truth / "test_data.json").write_text('[{"requirement": "r", "label": "no_op_fail"}]')
        (truth / "evaluation.py").write_text("def evaluate(): ...")
        (truth / "solution.py").write_text("# Canary String: x\ndef solution(apis): ...\n")
        (data / "datasets").mkdir(exist_ok=True)
        (data / "datasets" / f"{name}.txt").write_text(f"{key}\n")
    for folder, name in (("base_dbs", "spotify.db"), ("api_docs", "standard.json")):
        (data / folder).mkdir()
        (data / folder / name).write_text("x")
    return root


@pytest.fixture(autouse=True)
def installed(monkeypatch, tmp_path):
    """An engine that is set up as far as its facts say."""
    folder = tmp_path / "engine"
    folder.mkdir()
    facts = {"version": engine_module.VERSION, "apps": {"spotify": "Plays songs.", "venmo": "Sends money."}}
    (folder / FACTS).write_text(json.dumps(facts))
    monkeypatch.setenv("ACE_BENCH_APPWORLD", str(folder))
    return folder


def test_samples_hold_what_an_agent_may_know_and_nothing_of_the_truth(fake_root):
    task = make(data_dir=str(fake_root), source="real")
    (sample,) = task.samples("val")
    assert sample.id == "appworld-val-abc2_1"
    assert dict(sample.inputs) == {
        "background": "- spotify: Plays songs.\n- venmo: Sends money.\n",
        "app_descriptions": '[\n {\n  "name": "spotify",\n  "description": "Plays songs."\n },\n'
        ' {\n  "name": "venmo",\n  "description": "Sends money."\n }\n]',
        "question": "Do it.",
        "first_name": "A",
        "last_name": "B",
        "email": "a@b.example",
        "phone_number": "1",
        "datetime": "2023-05-18T12:00:00",
    }
    grade = task.failing_grade(sample)
    assert (grade.correct, grade.gold, grade.group) == (False, "def solution(apis): ...", "abc2")
    assert grade.detail == {"difficulty": 2, "level2": 1.0, "tests": 1, "passes": 0, "interactions": 0}


def test_tasks_are_chosen_by_a_list_or_a_file(fake_root, tmp_path):
    listed = tmp_path / "mine.txt"
    listed.write_text("\nabc2_1\n")

    def choose(given):
        return make(data_dir=str(fake_root), source="real", ids={"train": None, "val": given, "test": None})

    assert "ids" not in choose(None).checksums
    for given in (["abc2_1"], str(listed)):
        task = choose(given)
        assert [sample.id for sample in task.samples("val")] == ["appworld-val-abc2_1"]
        assert task.checksums["ids"]
    for given, problem in (
        (["abc2_1", "zzz9_1"], " holds zzz9_1, which is not a task of this split; the split has abc2_1 and so on$"),
        (["abc2_1", "abc2_1"], " holds abc2_1, twice; the split has abc2_1 and so on$"),
        (str(tmp_path / "no.txt"), r"=.*cannot be read \(.*\): give a list of ids or a file of them$"),
        ([], " holds no ids: give some, or null for the whole split$"),
    ):
        with pytest.raises(ConfigError, match=f"^task.ids.val{problem}"):
            choose(given)


def test_the_test_split_is_a_setting_and_part_of_the_identity(fake_root):
    tasks = {
        split: make(data_dir=str(fake_root), source="real", test_split=split)
        for split in ("test_normal", "test_challenge")
    }
    assert tasks["test_normal"].samples("test")[0].id == "appworld-test-abc3_1"
    assert tasks["test_challenge"].samples("test")[0].id == "appworld-test-abc4_1"
    with pytest.raises(DataError, match="no sample"):
        tasks["test_normal"].failing_grade(tasks["test_challenge"].samples("test")[0])
    with pytest.raises(ConfigError, match="no split"):
        tasks["test_normal"].samples("test_normal")


def test_checksums_tell_data_apart_that_give_other_results(fake_root):
    known = [make(data_dir=str(fake_root), source="real").checksums]
    evaluation = "tasks/abc3_1/ground_truth/evaluation.py"
    for changed in ("datasets/train.txt", "tasks/abc2_1/specs.json", "base_dbs/spotify.db", evaluation):
        path = fake_root / "data" / changed
        path.write_text(path.read_text() + "\n")
        known.append(make(data_dir=str(fake_root), source="real").checksums)
        assert known[-1] not in known[:-1]


def test_absent_data_and_an_absent_engine_name_the_fix(installed):
    with pytest.raises(DataError, match=r"^no AppWorld data: run `ace-bench appworld --data`, set task\.data_dir"):
        make(source="real")
    (installed / FACTS).write_text('{"version": "0.2.0", "apps": {}}')
    needed = rf"{installed} is release 0\.2\.0, {engine_module.VERSION} is needed: run `ace-bench appworld`$"
    with pytest.raises(ConfigError, match=needed):
        make(source="real")
    (installed / FACTS).unlink()
    with pytest.raises(ConfigError, match=f"is not set up in {installed}: run `ace-bench appworld`$"):
        make(source="real")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("datasets/train.txt", "../../etc_1\n", ": '../../etc_1' is not a task id such as 82e2fac_1"),
        ("datasets/train.txt", "", ": no task ids"),
        ("datasets/train.txt", "abc1_1\nabc1_1:tag\n", ": a task id occurs twice"),
        ("datasets/train.txt", None, " cannot be read: No such file or directory; download the AppWorld data again"),
        ("tasks/abc1_1/specs.json", "{}", ": Object missing required field `instruction`"),
        ("tasks/abc1_1/specs.json", "\xff", " is not UTF-8"),
        (
            "tasks/abc1_1/ground_truth/metadata.json",
            '{"difficulty": "hard"}',
            ": Expected `int`, got `str` - at `$.diff",
        ),
    ],
)
def test_broken_files_are_named(fake_root, name, text, message):
    path = fake_root / "data" / name
    path.unlink()
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    catalogue = Catalogue(fake_root)
    with pytest.raises(DataError, match=f"^{re.escape(f'{path}{message}')}"):
        _ = [(catalogue.specs(key), catalogue.truth(key)) for key in catalogue.ids("train")]


def test_what_agents_see_holds_no_truth_and_no_list_of_tasks(fake_root, tmp_path):
    copy_visible(fake_root, tmp_path / "shown")
    data = tmp_path / "shown" / "data"
    tasks = {f"tasks/abc{n}_1": ("dbs", "dbs/spotify.jsonl", "specs.json") for n in (1, 2, 3, 4)}
    folders = {"api_docs", "base_dbs", *tasks, *(f"{task}/dbs" for task in tasks)}
    files = {"api_docs/standard.json", "base_dbs/spotify.db"} | {f"{task}/{n}" for task in tasks for n in tasks[task]}
    modes = {str(path.relative_to(data)): path.stat().st_mode & 0o777 for path in data.rglob("*")}
    assert modes == {"tasks": 0o711, **dict.fromkeys(files, 0o644), **dict.fromkeys(folders, 0o755)}


def test_an_open_root_is_closed_unless_a_folder_above_it_is(fake_root):
    fake_root.chmod(0o755)
    fake_root.parent.chmod(0o700)
    close_to_others(fake_root)
    assert fake_root.stat().st_mode & 0o777 == 0o755
    for folder in fake_root.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o001)
    close_to_others(fake_root)
    assert fake_root.stat().st_mode & 0o777 == 0o700


def test_the_engines_trap_is_named(tmp_path):
    with pytest.raises(ConfigError, match="'memory' in their path"):
        check_path(tmp_path / "in-memory" / "root")


@pytest.fixture
def building(monkeypatch, tmp_path, installed):
    """Give the engine a shell script as its interpreter, which builds the mini-world; return where that goes."""
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path / "cache"))

    def by(script):
        python = installed / "bin" / "python"
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nmkdir -p "$5/data"\n{script}\n')
        python.chmod(0o755)
        return tmp_path / "cache" / "appworld"

    return by


def test_a_builder_that_fails_leaves_nothing_and_says_why(building):
    worlds = building('echo "a reason" >&2\nexit 1')
    with pytest.raises(DataError, match="mini-world cannot be built: a reason"):
        make()
    assert [path for path in worlds.iterdir() if path.is_dir()] == []


def test_a_new_mini_world_takes_the_place_of_those_that_nobody_asked_for_in_a_while(building):
    worlds = building("")
    old, late, part, other = (worlds / name for name in ("0" * 16, "1" * 16, "2" * 16 + ".part", "mine"))
    for folder in (old, late, part, other):
        (folder / "data").mkdir(parents=True)
        os.utime(folder, (0, time.time() - 7.1 * 24 * 3600))
    os.utime(late, (0, time.time() - 6.9 * 24 * 3600))
    builder = sample_folder("pkg://ace_bench/tasks/appworld/miniworld")
    root = sample_root(find_engine(), builder)
    assert {path for path in worlds.iterdir() if path.is_dir()} == {root, late, other}
    assert root.stat().st_mode & 0o777 == 0o700
    os.utime(root, (0, 0))
    assert sample_root(find_engine(), builder) == root
    assert time.time() - root.stat().st_mtime < 60, "who asks for a version keeps it"


@pytest.mark.parametrize("name", ["answers.py", "scenarios.toml"])
def test_a_mini_world_with_other_code_or_data_is_another_version(name, tmp_path):
    builder = sample_folder("pkg://ace_bench/tasks/appworld/miniworld")
    changed = Path(shutil.copytree(builder, tmp_path / "miniworld"))
    assert builder_digest(changed) == builder_digest(builder)
    (changed / name).write_text((changed / name).read_text() + "\n")
    assert builder_digest(changed) != builder_digest(builder)


def graded(task, difficulty, correct, interactions=1):
    truth = Truth(difficulty=difficulty, tests=2, solution="")
    verdict = Verdict(success=correct, passes=1 + correct)
    return Assignment(task=task, truth=truth).grade(verdict, interactions=interactions)


def test_metrics_are_the_official_ones():
    grades = [
        graded("a_1", 1, True),
        graded("a_2", 1, True, 3),
        graded("b_1", 3, True),
        graded("b_2", 3, False, 5),
    ]
    assert metrics(grades) == {
        "tgc": 75.0,
        "tgc_level1": 100.0,
        "tgc_level3": 50.0,
        "sgc": 50.0,
        "sgc_level1": 100.0,
        "sgc_level3": 0.0,
        "interactions": 2.5,
    }
    assert metrics([]) == {}


def test_limits_have_bounds(fake_root):
    bounds = {"timeout": [(1, 86_400), (0, 86_401)], "memory_gib": [(0.1, 1024), (0, 1025)]}
    for name, (inside, outside) in bounds.items():
        for value in inside:
            make(data_dir=str(fake_root), source="real", **{name: value})
        for value in outside:
            with pytest.raises(ConfigError, match=f"task.{name}={value} must be"):
                make(data_dir=str(fake_root), source="real", **{name: value})
