"""A run cut anywhere and continued ends like one that was never cut, and pays for nothing twice."""

import json
import subprocess
import sys
import time
from functools import partial

import pytest

from tests.doubles import Crash, Recording, crash_after
from tests.launching import ROOT, launch

SMALL = ("task=formula", "task.source=sample", "limit={train: 3, val: 1, test: 2}", "mode.epochs=2", "concurrency=2")
ONLINE = ("mode=online", "~mode.epochs", "+mode.epochs=1")
VARIANTS = {
    "offline": ("mode.select=best", "mode.eval_every=3", "mode.batch_size=2"),
    "online": ONLINE,
    "official": ("protocol=official", "mode.eval_every=2"),
    "official online": ("protocol=official", *ONLINE, "mode.window=2"),
    "merged batches": ("method=combee", *ONLINE, "mode.window=2", "mode.batch_size=2", "method.groups=2"),
    "cheatsheet": ("method=dc", *ONLINE),
    "retrieval": ("method=dc_rs", *ONLINE),
    "reflexion": ("method=reflexion", "labels=correctness", *ONLINE),
    "draws": ("method=best_of_k", "labels=none", *ONLINE, "mode.window=2"),
    "memory": ("method=mem_prompt", "labels=correctness", *ONLINE, "mode.window=2"),
    "workflows": ("method=awm", *ONLINE, "labels=none"),
    "memory items": ("method=reasoning_bank", *ONLINE, "labels=none", "mode.window=2"),
    "workflows of examples": ("method=awm_offline", "mode.epochs=1", "method.examples=2"),
}


RARE = ("official online", "retrieval", "workflows", "workflows of examples")
"""Their parts occur in the others; outages at random moments meet these methods, too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", [pytest.param(name, marks=[pytest.mark.thorough] * (name in RARE)) for name in VARIANTS]
)
def test_cut_at_every_single_call_and_continued(variant, tmp_path):
    overrides = (*SMALL, *VARIANTS[variant])
    made = []
    whole = launch(tmp_path / "whole", *overrides, backbone=lambda inner: Recording(inner, made))
    total = len(made)
    made = []
    for process in range(1, total + 2):  # each process gets one new call done, then dies inside the next one
        dying = partial(Recording, asked=made, before=crash_after(1))
        try:
            ran = launch(tmp_path / "cut", *overrides, backbone=dying)
            break
        except Crash:
            assert len(made) == process
    assert len(made) == total
    assert ran.lasting() == whole.lasting()
    assert sorted(record["id"] for record in ran.lines("calls")) == sorted(r["id"] for r in whole.lines("calls"))


def test_a_budget_stops_cleanly_says_why_and_more_budget_continues(tmp_path, capsys):
    whole = launch(tmp_path / "whole", *SMALL)
    stopped = launch(tmp_path / "cut", *SMALL, "budget.calls=7")
    assert stopped.status == 3
    assert len(stopped.lines("calls")) == 7
    status = json.loads((stopped.folder / "status.json").read_text())
    assert status["state"] == "stopped"
    assert "budget.calls=7" in status["reason"]
    assert "Raise it in the same command to continue" in capsys.readouterr().out
    assert launch(tmp_path / "cut", *SMALL, "budget.calls=7").status == 3
    continued = launch(tmp_path / "cut", *SMALL)
    assert continued.status == 0
    assert continued.folder == stopped.folder
    assert continued.lasting() == whole.lasting()


LONGER = {
    "finer": ("task=finer", "mode.epochs=2", "limit={train: 20, test: 20}"),
    "the official loop": ("task=appworld", "protocol=official", "limit={train: 2, test: 1}", "agent.max_steps=4"),
    "execution memory": (
        *("task=appworld", "method=icl", "backbone=embedded", "backbone.attention=3", "limit={train: 12, test: 2}"),
        *("agent.memory=execution", "agent.memory_place=system"),
    ),
    **{name: ("task=finer", f"method={name}", "method.auto=light", "limit=6") for name in ("gepa", "mipro")},
}


def wait_for_calls(results, least, process):
    while process.poll() is None:
        written = sum(path.read_bytes().count(b"\n") for path in results.rglob("calls.jsonl"))
        if written >= least:
            return
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.usefixtures("one_warm_engine")
@pytest.mark.parametrize(
    "run", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "finer")) for name in LONGER]
)
def test_kill_9_in_a_real_process(run, tmp_path):
    settings = (*LONGER[run], "task.source=sample", *(("concurrency=1", "mode.before=false") if run != "finer" else ()))
    whole = launch(tmp_path / "whole", *settings)
    for least in (5, 60) if run == "finer" else (2, 7):
        command = [sys.executable, "run.py", *settings, f"results={tmp_path / 'cut'}"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for_calls(tmp_path / "cut", least, process)
            process.kill()
    cut = launch(tmp_path / "cut", *settings)
    assert cut.lasting() == whole.lasting()
    assert sorted(call["id"] for call in cut.lines("calls")) == sorted(call["id"] for call in whole.lines("calls"))
