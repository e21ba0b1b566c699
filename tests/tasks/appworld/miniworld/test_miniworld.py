"""The mini-world: its tasks can be solved, not by luck or carelessness, and the engine's own tools agree."""

import json
import shutil
import sqlite3
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from ace_bench.core.encoding import digest_of_text
from ace_bench.core.types import Grade
from ace_bench.tasks.appworld.engine import python_of
from ace_bench.tasks.appworld.miniworld import builder, household, money, music
from ace_bench.tasks.appworld.miniworld.tasks import SPLITS
from ace_bench.tasks.appworld.pool import metrics

AGENTS = Path(__file__).with_name("miniworld_agents.py")
TASKS = tuple(builder.all_tasks())


def summary():
    """A line for each table and each task: its name, and a digest of all that is in it."""
    tables, rows = {}, (builder._accounts(), money.rows(), music.rows(), household.rows())
    for model, values in chain.from_iterable(rows):
        tables.setdefault(model, []).append(values)
    tasks = {task.id: [task, task.apps, task.naive, task.evaluation] for task in TASKS}
    named = {**{f"{model} ({len(some)} rows)": some for model, some in tables.items()}, **tasks}
    return "".join(f"{name}: {digest_of_text(repr(held))[:16]}\n" for name, held in named.items())


def test_tables_and_tasks_stay(snapshot):
    """Scores on the mini-world depend on them."""
    assert summary() == snapshot


def test_a_task_gives_nothing_away_and_leaves_something_to_do():
    for task in TASKS:
        assert str(task.answer) not in task.instruction, task.id
        assert task.naive != task.solution, task.id
        assert task.answer not in ("", 0), task.id
        assert task.answer is not None or all(task.private.values()), task.id


@pytest.fixture
def world(root, tmp_path):
    """A root with the mini-world's data and room for outputs."""
    (tmp_path / "world").mkdir()
    for name in ("data", "naive_solutions"):
        (tmp_path / "world" / name).symlink_to(root / name)
    return tmp_path / "world"


def run(engine, world, *command):
    settings = {"cwd": world, "env": engine.environment(world, world.parent), "text": True}
    return subprocess.check_output([python_of(engine.folder), *command], **settings)


@pytest.mark.thorough
@pytest.mark.parametrize("split", SPLITS)
def test_only_the_reference_solution_passes_and_the_command_line_says_so_too(split, engine, world):
    lines = run(engine, world, AGENTS, split, "reference", "naive", "idle").splitlines()
    episodes = {(one["agent"], one["task"]): one for one in map(json.loads, lines)}
    tasks = sorted((task for task in TASKS if task.split == split), key=lambda task: task.id)
    assert set(episodes) == {(agent, task.id) for agent in ("reference", "naive", "idle") for task in tasks}
    assert {key for key, one in episodes.items() if one["success"]} == {("reference", task.id) for task in tasks}

    outputs = world / "experiments" / "outputs"
    mixture = {}
    for place, task in enumerate(tasks):
        agent = ("reference", "naive" if task.number == 2 else "reference", "idle")[place // 3 % 3]
        mixture[task.id] = episodes[agent, task.id]
        shutil.copytree(outputs / agent / "tasks" / task.id, outputs / "mixed" / "tasks" / task.id)
    run(engine, world, "-m", "appworld.cli", "evaluate", "mixed", split, "--root", str(world))
    said = json.loads((outputs / "mixed" / "evaluations" / f"{split}.json").read_text())
    ours = metrics([grade(task, episode["success"]) for task, episode in mixture.items()])
    assert 0 < ours["sgc"] < ours["tgc"] < 100
    assert {name: one["success"] for name, one in said["individual"].items()} == {
        name: one["success"] for name, one in mixture.items()
    }
    assert said["aggregate"] == {
        "task_goal_completion": pytest.approx(ours["tgc"], abs=0.05),
        "scenario_goal_completion": pytest.approx(ours["sgc"], abs=0.05),
    }


def grade(task, success):
    detail = {"difficulty": 1, "interactions": 1}
    return Grade(score=float(success), correct=success, observed="", gold="", group=task.split("_")[0], detail=detail)


@pytest.mark.thorough
def test_the_engine_verifies_the_tasks_and_two_builds_are_equal(engine, root, world, tmp_path):
    verify = ("-u", "-m", "appworld.cli", "verify", "tasks", "--root", str(world))  # it ends with os._exit, unflushed
    assert "Passed 30/30 tasks." in run(engine, world, *verify)
    again = tmp_path / "again"
    run(engine, world, "-P", "-m", "engine_side.build", Path(builder.__file__).parent, again)
    files = files_of(root)
    assert files == files_of(again)
    for path in files:
        assert content(root / path) == content(again / path), path


def files_of(folder):
    """Every file but the bytecode that evaluations leave."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if "__pycache__" not in path.parts)


def content(path):
    if path.suffix != ".db":
        return path.read_bytes()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return list(database.iterdump())
