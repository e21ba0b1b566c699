"""A run of AppWorld's official loop, killed and continued, ends with the same bytes and pays for nothing twice."""

import json
import subprocess
import sys

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.tasks.appworld.engine import find_engine
from tests.integration.test_resume import wait_for_calls
from tests.launching import ROOT

COMMAND = [
    sys.executable, "run.py", "task=appworld", "task.source=sample", "protocol=official", "concurrency=1",
    "limit={train: 2, test: 1}", "agent.max_steps=4", "mode.before=false",
]  # fmt: skip


def start(results):
    command = [*COMMAND, f"results={results}"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(results):
    with start(results) as process:
        printed = process.communicate()[0]
    assert process.returncode == 0, printed
    (metrics,) = results.rglob("metrics.json")
    return metrics.parent


def calls(folder):
    return [json.loads(line)["id"] for line in (folder / "calls.jsonl").read_text().splitlines()]


def lasting(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    return {name: metrics[name] for name in ("splits", "headline", "context", "rollouts", "tokens", "counters")}


@pytest.mark.thorough
def test_kill_9_within_the_attempts_at_a_task(tmp_path):
    try:
        find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    whole = finished(tmp_path / "whole")
    for least in (2, 7):
        with start(tmp_path / "cut") as process:
            wait_for_calls(tmp_path / "cut", least, process)
            process.kill()
    cut = finished(tmp_path / "cut")
    assert sorted(calls(cut)) == sorted(calls(whole))
    assert len({*calls(cut)}) == len(calls(cut))
    for name in ("contexts/final.json", "contexts/final.txt"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert lasting(cut) == lasting(whole)
