"""Nothing is lost when servers are killed, and nothing is left behind when the harness ends, however it ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ace_bench.core.task import Agent
from ace_bench.core.types import Attempt
from tests.launching import ROOT, launch
from tests.tasks.appworld.conftest import processes_in, settled, solved

PLAYING = """
import sys, time
from tests.tasks.appworld.conftest import make
task = make()
first, second = task.samples("train")[:2]
with task.open(first) as one, task.open(second) as two:
    one.step("__import__('ctypes').CDLL(None).prctl(1, 0, 0, 0, 0)")
    print(task._pool._running.folder, flush=True)
    two.step("while True:\\n    try:\\n        apis.supervisor.show_profile()\\n    except Exception: pass")
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_nothing_is_left_of_a_harness_that_was_killed_or_interrupted(engine, number):
    harness = subprocess.Popen([sys.executable, "-c", PLAYING], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with harness, harness.stdout as lines:
        folder = Path(lines.readline().strip())
        assert folder.is_dir()
        episodes = folder / "episodes"
        assert settled(lambda: len(processes_in(episodes)) == 4)
        harness.send_signal(number)
        harness.wait()
    assert settled(lambda: not folder.exists())
    assert processes_in(folder) == []


@pytest.mark.slow
def test_closing_leaves_nothing_of_a_session_that_is_open(task):
    with task.open(task.samples("train")[0]) as session:
        folder = task._pool._running.folder
        assert session.step("print(1)") == "1\n"
        task._pool.end()  # what closing a task does where no other test shares its engine
    task._pool.end()
    assert not folder.exists()
    assert processes_in(folder) == []


@dataclass
class Reference(Agent):
    """An agent that knows the solutions; in the first tries of some episodes its server is killed."""

    task: object
    doomed: set[str]
    tried: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def solve(self, sample, session, context, lm, reflection):
        with self.lock:
            first = sample.id not in self.tried
            self.tried.append(sample.id)
        session.step("print(apis.supervisor.show_profile())")
        if first and sample.id in self.doomed:
            for process in processes_in(session._server.folder):
                os.kill(process, signal.SIGKILL)
        solved(self.task, sample, session)
        return Attempt(answer="done")


@pytest.mark.slow
@pytest.mark.parametrize(("tested", "killed"), [(3, 2), pytest.param(18, 10, marks=pytest.mark.thorough)])
def test_servers_killed_in_random_episodes_cost_a_second_try_and_no_episode(
    engine, one_warm_engine, tmp_path, tested, killed
):
    agents = []

    def with_reference(spec):
        samples = [sample.id for sample in spec.task.samples("test")[:tested]]
        agents.append(Reference(task=spec.task, doomed=set(random.Random(7).sample(samples, killed))))
        return replace(spec, agent=agents[0])

    settings = ("task=appworld", "task.source=sample", "method=base", "concurrency=2", f"limit={{test: {tested}}}")
    ran = launch(tmp_path, *settings, spec=with_reference)
    assert ran.status == 0
    rollouts = [line for line in ran.lines("journal") if line["kind"] == "rollout" and line["stage"] == "evaluate"]
    ended = [line for line in rollouts if line["split"] == "test"]
    assert len(ended) == len({line["sample"] for line in ended}) == tested
    assert {line["sample"] for line in ended if line["restarts"]} == agents[0].doomed
    assert all(line["grade"]["correct"] and line["fault"] is None for line in ended)
    assert len(agents[0].tried) == tested + killed
    assert ran.metrics["splits"]["test"]["after"]["tgc"] == 100.0
    assert ran.metrics["splits"]["test"]["after"]["sgc"] == 100.0
