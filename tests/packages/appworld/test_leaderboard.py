"""A run prepared for the official leaderboard: the engine's own command line agrees with the run's figures."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import ConfigError
from ace_bench.core.task import Agent
from ace_bench.core.types import Attempt, Turn
from ace_bench.tasks.catalog import make_task
from tests.launching import launch
from tests.packages.appworld.sharing import sharing

RUN = "\nsolution(apis, requester)"
LABELS = ("--name", "toy_run", "--method", "Toy", "--llm", "None")


@dataclass
class MostlyReference(Agent):
    """An agent that knows the solutions of all tasks but the second of each second scenario."""

    task: object

    def solve(self, sample, session, context, lm, reflection):
        gold = self.task.failing_grade(sample).gold + RUN
        turns = [
            Turn(action=code, observation=session.step(code))
            for code in ("print(apis.supervisor.show_profile())", "print('idle')" if self.fails(sample) else gold)
        ]
        return Attempt(answer="done", trajectory=tuple(turns))

    def fails(self, sample):
        scenario, number = sample.id.split("_")
        scenarios = list(dict.fromkeys(other.id.split("_")[0] for other in self.task.samples("test")))
        return number == "2" and scenarios.index(scenario) % 2 == 0


@pytest.mark.thorough
def test_official_figures_are_those_of_the_run(tmp_path, capsys, pytestconfig):
    try:
        make_task("appworld", source="sample", sample_allowed=True)
    except ConfigError as error:
        pytest.skip(str(error))
    settings = ("task=appworld", "task.source=sample", "method=base")
    with sharing(pytestconfig):
        ran = launch(tmp_path, *settings, spec=lambda spec: replace(spec, agent=MostlyReference(spec.task)))
        assert start("leaderboard", [str(ran.folder), *LABELS]) == 0
    after = ran.metrics["splits"]["test"]["after"]
    assert 0 < after["sgc"] < after["tgc"] < 100
    packed = ran.folder / "leaderboard"
    outputs = packed / "experiments" / "outputs" / "toy_run_test_normal"
    official = json.loads((outputs / "evaluations" / "test_normal.json").read_text())["aggregate"]
    assert official["task_goal_completion"] == pytest.approx(after["tgc"], abs=0.05)
    assert official["scenario_goal_completion"] == pytest.approx(after["sgc"], abs=0.05)
    assert (outputs / "leaderboard.bundle").stat().st_size > 1000
    row = json.loads((packed / "toy_run_test_normal.row.json").read_text())
    assert row["different_outputs"] == 0
    assert row["source"] == "sample"
    assert row["test_normal"]["all"]["task_goal_completion"] == pytest.approx(after["tgc"], abs=0.01)
    assert row["test_normal"]["all"]["interactions"] == 2.0

    assert start("leaderboard", [str(ran.folder), "--name", "Bad Name", *LABELS[2:]]) == 2
    assert start("leaderboard", [str(tmp_path), *LABELS]) == 2
    assert "is not the folder of a finished run" in " ".join(capsys.readouterr().err.split())
