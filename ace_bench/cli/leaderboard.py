"""Prepare a finished AppWorld run for the official leaderboard.

    ace-bench leaderboard RUN_FOLDER --name ace_deepseek --method "ACE" --llm "DeepSeek-V3.1" --url ..

A run records the actions of its agents, not the final databases. So every test rollout is replayed, action by action,
in a fresh world, and outputs that differ from the record are counted. The folder (``--into``) then has the layout that
the engine's own ``appworld evaluate`` and ``appworld pack`` read, which are run on it, and a JSON file with the figures
of the leaderboard's table. The leaderboard wants one run on test_normal and one on test_challenge.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from rich.progress import track

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Grade, Sample, Turn
from ace_bench.report.evidence import RolloutLine, read_journal, tested_rollouts
from ace_bench.report.records import read_run
from ace_bench.store.files import write_files
from ace_bench.tasks.appworld.engine import Engine, find_engine
from ace_bench.tasks.appworld.task import AppWorld
from ace_bench.tasks.catalog import make_task

_NAME = re.compile(r"[a-z0-9_-]+")


class _Attempt(msgspec.Struct, frozen=True):
    trajectory: tuple[Turn, ...] = ()


class _AttemptLine(RolloutLine):
    attempt: _Attempt = _Attempt()


_SPLITS = ("test_normal", "test_challenge")


def _read_tested(folder: Path) -> tuple[dict[str, Any], dict[str, tuple[Turn, ...]]]:
    """Read which tasks a finished run tested, and the agents' actions, by sample id.

    Of its other settings only limits are used. The rest could choose code, or let recorded actions out of the sandbox.
    """
    if not (folder / "metrics.json").is_file():
        raise ConfigError(f"{folder} is not the folder of a finished run; give one that a run printed last")
    run = read_run(folder)
    if run.task != "appworld":
        raise ConfigError(f"{folder} is a run on {run.task}; only AppWorld has this leaderboard")
    lines = tested_rollouts(read_journal(folder, _AttemptLine), run.metrics)
    recorded = run.settings["task"]
    if (split := recorded.get("test_split")) not in _SPLITS:
        raise ConfigError(f"{folder} tested the split {split}, and the leaderboard has {' and '.join(_SPLITS)}")
    limits = {name: recorded.get(name) for name in ("timeout", "memory_gib")}
    settings = {
        "test_split": split,
        "source": run.source,
        **{k: v for k, v in limits.items() if type(v) in (int, float)},
    }
    return settings, {sample: line.attempt.trajectory for sample, line in lines.items()}


def _replay(task: AppWorld, sample: Sample, turns: Sequence[Turn], target: Path) -> tuple[Grade, int]:
    """Replay a rollout and save its final state. Return its grade and how many outputs differ from the record."""
    with task.open(sample) as session:
        # Actions that the agent answered from memory only read data, so running them now changes nothing.
        outputs = [(turn.observation, session.step(turn.action)) for turn in turns if turn.action]
        session.keep(target)
        return session.grade(""), sum(before != now for before, now in outputs)


def _call_engine(engine: Engine, folder: Path, *arguments: str) -> None:
    """Run the engine's own command line on the prepared folder."""
    command = [str(engine.folder / "bin" / "appworld"), *arguments, "--root", str(folder)]
    environment = engine.environment(folder, folder)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"`appworld {arguments[0]}` failed: {(done.stderr or done.stdout)[-1000:]}")


def _figures(scores: Mapping[str, float], grades: Sequence[Grade]) -> dict[str, dict[str, float | None]]:
    """Return TGC, SGC and interactions as the leaderboard shows them, over all tasks and by level of difficulty."""
    figures = {}
    for level in (0, 1, 2, 3):
        chosen = [grade for grade in grades if level in (0, grade.detail["difficulty"])]
        suffix = f"_level{level}" if level else ""
        figures[f"level {level}" if level else "all"] = {
            "task_goal_completion": scores.get(f"tgc{suffix}"),
            "scenario_goal_completion": scores.get(f"sgc{suffix}"),
            "interactions": sum(g.detail["interactions"] for g in chosen) / len(chosen) if chosen else None,
        }
    return figures


def _pack(options: argparse.Namespace) -> None:
    """Replay all rollouts, evaluate officially, pack, and write the row."""
    settings, turns = _read_tested(options.run)
    split = settings["test_split"]
    if not _NAME.fullmatch(options.name):
        raise ConfigError(f"--name {options.name} may contain only lower-case letters, digits, - and _")
    experiment = f"{options.name}_{split}"
    folder: Path = (options.into or options.run / "leaderboard").resolve()
    outputs = folder / "experiments" / "outputs" / experiment
    shutil.rmtree(outputs, ignore_errors=True)
    outputs.mkdir(parents=True)
    engine = find_engine()
    task: Any = make_task("appworld", **settings, sample_allowed=True)
    if not (folder / "data").exists():
        os.symlink(task.root / "data", folder / "data")
    with closing(task):
        samples = task.samples("test")
        if len(turns) < len(samples):
            raise ConfigError(f"the run tested {len(turns)} of {len(samples)} tasks; the leaderboard requires all")
        grades, differences = zip(
            *(
                _replay(task, sample, turns[sample.id], outputs / "tasks" / sample.id.removeprefix("appworld-test-"))
                for sample in track(samples, description="playing again", console=Console())
            ),
            strict=True,
        )
    _call_engine(engine, folder, "evaluate", experiment, split)
    _call_engine(engine, folder, "pack", experiment, split, options.method, "", options.llm, "", options.url)
    scores, differing = task.score(grades), sum(differences)
    metadata = {"experiment": experiment, "source": task.source, "method": options.method, "llm": options.llm}
    record = {**metadata, "different_outputs": differing, split: _figures(scores, grades)}
    write_files({folder / f"{experiment}.row.json": json.dumps(record, indent=1) + "\n"})
    summary = f"TGC {scores['tgc']:.1f}, SGC {scores['sgc']:.1f}"
    print_line(f"{summary} on {split}; {differing} outputs differ from the record\n{outputs / 'leaderboard.bundle'}")


def main(arguments: Sequence[str]) -> int:
    """Prepare a submission and return the exit status."""
    parser = Parser("leaderboard", __doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--name", required=True, help="name of the experiment, without the split")
    parser.add_argument("--method", required=True, help="method, as the leaderboard is to show it")
    parser.add_argument("--llm", required=True, help="model, as the leaderboard is to show it")
    parser.add_argument("--url", default="", help="where to read more")
    parser.add_argument("--into", type=Path, help="where to write (default: RUN/leaderboard)")
    options = parser.parse_args(arguments)
    _pack(options)
    return 0
