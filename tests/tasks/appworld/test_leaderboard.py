"""A run prepared for the official leaderboard: the engine's own command line agrees with the run's figures."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from ace_bench.cli.leaderboard import _figures, _replay
from ace_bench.cli.main import start
from ace_bench.core.errors import ConfigError
from ace_bench.core.task import Agent
from ace_bench.core.types import Attempt, Grade, Turn
from ace_bench.tasks.catalog import make_task
from tests.launching import launch
from tests.tasks.appworld.sharing import sharing

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
def test_official_figures_are_those_of_the_run(tmp_path, pytestconfig):
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


def test_a_rollout_is_replayed_and_outputs_that_differ_are_counted(task, tmp_path):
    sample = task.samples("train")[0]
    turns = [
        Turn(action=code, observation=shown, thought="")
        for code, shown in (("print(1)", "1\n"), ("", "nothing was run"), ("print(2)", "3\n"))
    ]
    solved = Turn(action=task.failing_grade(sample).gold + RUN, observation="Execution successful.")
    grade, differences = _replay(task, sample, [*turns, solved], tmp_path / "kept")
    assert (grade.correct, grade.detail["interactions"], differences) == (True, 3, 1)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"dbs", "logs", "version"}


def test_figures_are_those_of_all_tasks_and_of_each_level():
    scores = {"tgc": 50.0, "sgc": 0.0, "tgc_level1": 100.0, "sgc_level1": 100.0, "tgc_level3": 0.0, "sgc_level3": 0.0}
    grades = [
        Grade(score=0.0, correct=False, observed="", gold="", detail={"difficulty": level, "interactions": count})
        for level, count in ((1, 2), (3, 4), (3, 9))
    ]
    names = ("task_goal_completion", "scenario_goal_completion", "interactions")
    assert _figures(scores, grades) == {
        level: dict(zip(names, values, strict=True))
        for level, values in {
            "all": (50.0, 0.0, 5.0),
            "level 1": (100.0, 100.0, 2.0),
            "level 2": (None, None, None),
            "level 3": (0.0, 0.0, 6.5),
        }.items()
    }


def test_what_cannot_be_prepared_is_named(tmp_path, capsys, engine, pytestconfig):
    def refused(folder, *labels):
        assert start("leaderboard", [str(folder), *(labels or LABELS)]) == 2
        return " ".join(capsys.readouterr().err.split())

    other = launch(tmp_path / "other", "task.source=sample", "method=base", "limit=1").folder
    with sharing(pytestconfig):
        ran = launch(tmp_path, "task=appworld", "task.source=sample", "method=base", "limit={test: 1}").folder
        assert "the run tested 1 of 18 tasks; the leaderboard requires all" in refused(ran)
    assert f"{tmp_path} is not the folder of a finished run; give one that a run printed last" in refused(tmp_path)
    assert f"{other} is a run on finer; only AppWorld has this leaderboard" in refused(other)
    named = refused(ran, "--name", "Bad Name", *LABELS[2:])
    assert "--name Bad Name may contain only lower-case letters, digits, - and _" in named
