"""Runs on a taskset of verifiers with the real package, over the embedded server."""

import json
from pathlib import Path

import pytest

from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.doubles import Recording
from tests.launching import launch, options, quick, retries
from tests.wrong.refusing import refusal

pytest.importorskip("verifiers", reason="needs the extra verifiers: make test-environments")
FILE = Path(__file__).with_name("cities.py")
CITIES = ("task=verifiers", f"task.environment={FILE}")
TOOL = (*CITIES, "task.args={task: {tool: works}}", "mode.before=false", "mode.epochs=1")


@pytest.fixture(scope="module")
def looked_up(tmp_path_factory):
    """A finished run with a tool, over HTTP."""
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        backbone = ("backbone=openai_compatible", "backbone.model=embedded", f"backbone.base_url={server.address}")
        more = ("backbone.api_key_env=null", "backbone.simulated=true", "embedder=hashing")
        yield launch(tmp_path_factory.mktemp("tool"), *TOOL, *backbone, *more)


def test_a_tool_is_called_over_http_and_changes_the_state_that_rewards_read(looked_up):
    assert looked_up.status == 0
    assert looked_up.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    after = looked_up.metrics["splits"]["test"]["after"]
    assert (after["score"], after["success"], after["scorer_used_the_tool"]) == (100.0, 100.0, 100.0)
    record = _rollouts(looked_up)[-1]
    assert record["attempt"]["trajectory"][0]["action"].startswith("atlas(land=")
    assert record["grade"]["gold"] == record["attempt"]["answer"]


def test_rewards_are_summed_by_weight(tmp_path):
    ran = launch(tmp_path, *CITIES, "task.args={task: {tool: raises}}", "method=base", "mode.before=false")
    assert ran.metrics["headline"]["after"] == 0.0
    assert "burnt down" in _rollouts(ran)[-1]["attempt"]["trajectory"][0]["observation"]


@pytest.mark.parametrize("method", options("method"))
def test_every_method_runs_over_it(method, tmp_path):
    if needed := {"gepa": "dspy", "mipro": "dspy", "heuristic": "agent_episodic_memory"}.get(method):
        pytest.importorskip(needed)
    mode = "mode=online" if retries(method) else "mode.epochs=1"
    ran = launch(tmp_path, *CITIES, f"method={method}", mode, "mode.before=false", *quick(method))
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 4
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}


def test_a_run_that_is_continued_ends_with_the_same_results(tmp_path):
    asked = (*TOOL, "concurrency=1")
    assert launch(tmp_path / "cut", *asked, "budget.calls=7").status == 3
    continued, whole = (launch(tmp_path / place, *asked) for place in ("cut", "whole"))
    assert continued.lasting() == whole.lasting()


def test_judges_pass_the_counted_gateway(tmp_path):
    given = ("task.args={task: {reward: judge}}", "task.judge=true", "backbone@roles.judge=embedded")
    ran = launch(tmp_path, *CITIES, *given, "method=base", "mode.before=false")
    assert ran.metrics["calls"]["evaluate"]["judge"] == 4
    assert ran.metrics["headline"]["after"] == 100.0


def test_the_reference_answer_is_hidden_without_labels(tmp_path):
    made = []

    def recording(inner):
        made.append(Recording(inner))
        return made[-1]

    given = ("mode.epochs=1", "labels=none", "task.answer=idx")
    assert launch(tmp_path, *CITIES, *given, backbone=recording).status == 0
    assert not any("reference_answer" in text for _, _, text in made[0].asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["task.environment=null"], "task.environment is not set: name an installed taskset of verifiers"),
        (["task.environment=no_such_taskset"], "task.environment=no_such_taskset cannot be loaded"),
        (["task.environment=nowhere.py"], "task.environment=nowhere.py is not a file"),
        ([CITIES[1], "task.args={colour: red}"], "cannot be loaded with args={'colour': 'red'}"),
        ([CITIES[1], "task.args={lands: 2}"], "task.split_ratio: 2 samples are too few for train, val, test"),
        ([CITIES[1], "task.answer=colour"], "task.answer=colour is not a field of the tasks of"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(asked, said, tmp_path, capsys):
    assert said in refusal(["task=verifiers", *asked], tmp_path / "results", capsys)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["task.args={task: {reward: raises}}"], "no such column"),
        (["task.args={task: {reward: judge}}"], "the scorer calls a model: allow it by task.judge=true"),
        (["task.args={task: {tool: hangs}}", "task.timeout=0.5"], "did nothing for 0.5 s (task.timeout)"),
    ],
)
def test_an_environment_that_fails_is_a_fault_of_the_task(asked, said, tmp_path):
    ran = launch(tmp_path, *CITIES, "method=base", "limit=1", "mode.before=false", *asked)
    assert ran.status == 0
    fault = _rollouts(ran)[-1]["fault"]
    assert fault["owner"] == "task"
    assert said in fault["message"]


def _rollouts(ran):
    lines = (json.loads(line) for line in (ran.folder / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if "attempt" in line]
