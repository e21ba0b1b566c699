"""AppWorld runs, killed and continued, end with the same bytes and pay for nothing twice."""

import json
import subprocess
import sys

import pytest

from ace_appworld.engine import find_engine
from ace_bench.core.errors import ConfigError
from tests.integration.test_resume import wait_for_calls
from tests.launching import ROOT

COMMAND = [
    sys.executable, "run.py", "task=appworld", "task.source=sample", "concurrency=1", "mode.before=false",
]  # fmt: skip
RUNS = {
    "the official loop": ("protocol=official", "limit={train: 2, test: 1}", "agent.max_steps=4"),
    "execution memory": (
        *("method=icl", "backbone=embedded", "backbone.attention=3", "limit={train: 12, test: 2}"),
        *("agent.memory=execution", "agent.memory_place=system"),
    ),
}


def start(results, run):
    command = [*COMMAND, *RUNS[run], f"results={results}"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(results, run):
    with start(results, run) as process:
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
@pytest.mark.parametrize("run", RUNS)
def test_kill_9_within_the_attempts_at_a_task(run, tmp_path):
    try:
        find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    whole = finished(tmp_path / "whole", run)
    for least in (2, 7):
        with start(tmp_path / "cut", run) as process:
            wait_for_calls(tmp_path / "cut", least, process)
            process.kill()
    cut = finished(tmp_path / "cut", run)
    assert sorted(calls(cut)) == sorted(calls(whole))
    assert len({*calls(cut)}) == len(calls(cut))
    contexts = {path.name: path.read_bytes() for path in (whole / "contexts").glob("final.*")}
    assert contexts
    assert contexts == {path.name: path.read_bytes() for path in (cut / "contexts").glob("final.*")}
    assert lasting(cut) == lasting(whole)
