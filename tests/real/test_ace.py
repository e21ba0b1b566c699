"""ACE with a real language model: to its summary, with what cannot be read counted, and through `kill -9`."""

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.launching import ROOT, Ran, launch

pytestmark = pytest.mark.real

KILLS = (3, 7)
"""After how many calls a run is killed."""


@dataclass(frozen=True)
class Whole:
    """A run that nothing interrupted, what it printed, and how many requests it sent."""

    ran: Ran
    printed: str
    requests: int


@pytest.fixture(scope="session")
def whole(served, tmp_path_factory):
    results, before = tmp_path_factory.mktemp("whole"), served.requests()
    with started(results, *served.overrides) as process:
        printed = process.communicate()[0]
    (metrics,) = results.rglob("metrics.json")
    ran = Ran(status=process.returncode, folder=metrics.parent)
    return Whole(ran=ran, printed=printed, requests=served.requests() - before)


def started(results, *overrides):
    command = [sys.executable, "run.py", f"results={results}", *overrides]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def by_role(calls):
    """Count calls by stage and role, as metrics do."""
    return Counter((call["stage"], call["role"]) for call in calls)


def flat(metric):
    return {(stage, role): count for stage, roles in metric.items() for role, count in roles.items()}


def test_a_run_reaches_its_summary_and_counts_what_cannot_be_read(whole):
    assert whole.ran.status == 0, whole.printed
    assert "test accuracy" in whole.printed
    calls, metrics = whole.ran.lines("calls"), whole.ran.metrics
    assert not metrics["simulated"]
    asked = metrics["calls"]["adapt"]
    assert asked["reflector"] == 2 <= asked["curator"], "it learns from each sample, and asks again where it must"
    assert flat(metrics["calls"]) == by_role(calls)
    assert flat(metrics["cut_replies"]) == by_role(call for call in calls if call["cut"])
    unreadable = flat(metrics["unreadable_replies"])
    assert all(count <= flat(metrics["calls"])[key] for key, count in unreadable.items())
    lost = [quality["replies"]["unreadable"] for quality in metrics["role_quality"].values()]
    assert sum(lost) == sum(unreadable.values())
    assert metrics["tokens"]["total"]["in"] == sum(call["usage"]["prompt"] for call in calls)


def test_cached_tokens_are_those_that_the_server_reports(served, whole):
    calls, cache = whole.ran.lines("calls"), whole.ran.metrics["cache"]
    cached = sum(call["usage"]["cached"] for call in calls)
    assert 0 < cached == cache["total"]["cached_tokens"]
    stages = [stage for stage in cache["servers"][served.name].values() if isinstance(stage, dict)]
    assert sum(stage["hits"] for stage in stages) == cached
    assert sum(stage["queries"] for stage in stages) == sum(call["usage"]["prompt"] for call in calls)


def test_a_run_killed_twice_makes_the_same_calls_each_paid_once(served, whole, tmp_path):
    before = served.requests()
    for least in KILLS:
        kill_after(least, tmp_path, *served.overrides)
    killed = launch(tmp_path, *served.overrides)
    assert killed.status == 0
    calls, expected = killed.lines("calls"), whole.ran.lines("calls")
    assert [(call["role"], call["text"]) for call in calls] == [(call["role"], call["text"]) for call in expected]
    assert killed.lasting() == whole.ran.lasting()
    probes = whole.requests - len(expected)
    lost = len(KILLS)  # a call is under way when a run is killed
    assert served.requests() - before <= whole.requests + lost * (1 + probes)


def kill_after(least, results, *overrides):
    with started(results, *overrides) as process:
        while recorded(results) < least:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        process.kill()
    states = [json.loads(path.read_text())["state"] for path in results.rglob("status.json")]
    assert states == ["running"], "killed in mid-run"


def recorded(results):
    return sum(path.read_bytes().count(b"\n") for path in results.rglob("calls.jsonl"))
