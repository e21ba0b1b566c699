"""Runs on Inspect AI tasks with the real package, over the embedded server."""

import json
from pathlib import Path

import pytest

from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.doubles import Recording
from tests.launching import launch, options, quick, retries
from tests.wrong.refusing import refusal

pytest.importorskip("inspect_ai", reason="needs the extra inspect: make test-environments")
FILE = Path(__file__).with_name("atlas.py")
CHOICES = ("task=inspect", f"task.name={FILE}@choices")
LOOKUP = ("task=inspect", f"task.name={FILE}@lookup")


@pytest.fixture(scope="module")
def served():
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield (
            "backbone=openai_compatible",
            "backbone.model=embedded",
            f"backbone.base_url={server.address}",
            "backbone.api_key_env=null",
            "backbone.simulated=true",
            "embedder=hashing",
        )


@pytest.fixture(scope="module")
def looked_up(served, tmp_path_factory):
    """A finished run with a tool, over HTTP."""
    return launch(tmp_path_factory.mktemp("lookup"), *LOOKUP, *served, "mode.epochs=1", "mode.before=false")


def test_a_tool_is_called_over_http_and_the_steps_are_recorded(looked_up):
    assert looked_up.status == 0
    assert looked_up.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    first, last = _rollouts(looked_up)[-1]["attempt"]["trajectory"]
    assert first["action"].startswith("atlas(land=")
    assert first["observation"] in last["thought"]


def test_scores_that_are_not_0_or_1_are_kept(looked_up):
    metrics = looked_up.metrics["splits"]["test"]["after"]
    assert metrics["score"] == 75.0
    assert metrics["success"] == 0.0
    assert (metrics["scorer_includes"], metrics["scorer_half"]) == (100.0, 50.0)


def test_the_context_ends_the_system_message_and_the_rest_is_the_environments(tmp_path):
    made = []

    def recording(inner):
        made.append(Recording(inner))
        return made[-1]

    ran = launch(tmp_path, *CHOICES, "mode.epochs=1", "mode.before=false", backbone=recording)
    assert ran.status == 0
    asked = [text for role, _, text in made[0].asked if role == "generator"]
    assert all("You answer questions on geography." in text for text in asked)
    assert "<playbook>" in asked[-1]


@pytest.mark.parametrize("method", options("method"))
def test_every_method_runs_over_it(method, tmp_path):
    if needed := {"gepa": "dspy", "mipro": "dspy", "heuristic": "agent_episodic_memory"}.get(method):
        pytest.importorskip(needed)
    mode = "mode=online" if retries(method) else "mode.epochs=1"
    ran = launch(tmp_path, *CHOICES, f"method={method}", mode, "mode.before=false", *quick(method))
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 4
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}


def test_a_run_that_is_continued_ends_with_the_same_results_and_pays_nothing_twice(tmp_path):
    asked = (*LOOKUP, "mode.epochs=1", "mode.before=false", "concurrency=1")
    assert launch(tmp_path / "cut", *asked, "budget.calls=7").status != 0
    continued = launch(tmp_path / "cut", *asked)
    whole = launch(tmp_path / "whole", *asked)
    assert continued.lasting() == whole.lasting()
    assert len(continued.lines("calls")) == len(whole.lines("calls"))


def test_the_cost_is_estimated_and_the_first_prompts_are_shown_with_tools(tmp_path, capsys):
    assert launch(tmp_path, *LOOKUP, "dry_run=true", "mode.epochs=1").status == 0
    assert "first prompt of the generator" in capsys.readouterr().out


def test_an_attempt_of_too_many_turns_is_graded_as_it_stands(tmp_path):
    ran = launch(tmp_path, *LOOKUP, "agent.max_turns=1", "method=base", "mode.before=false")
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert ran.metrics["splits"]["test"]["after"]["scorer_half"] == 50.0
    assert {record["attempt"]["ended"] for record in _rollouts(ran)} == {"steps"}


def test_an_environment_may_speak_as_the_user_and_its_words_are_recorded(tmp_path):
    ran = launch(tmp_path, "task=inspect", f"task.name={FILE}@dialogue", "method=ace", "mode.epochs=1")
    assert ran.status == 0
    record = _rollouts(ran)[-1]
    assert record["calls"] == 2
    assert record["attempt"]["trajectory"][0]["observation"] == "Are you sure? Options: yes, no."
    assert record["attempt"]["answer"] == record["attempt"]["trajectory"][1]["thought"]


def test_another_agent_is_refused(tmp_path, capsys):
    assert launch(tmp_path, *CHOICES, "agent=single_turn", "method=base", "mode.before=false").status == 2
    assert "choose agent=environment" in capsys.readouterr().err


def test_scorers_that_call_a_model_pass_the_counted_gateway_as_the_judge(tmp_path):
    given = ("method=base", "mode.before=false", "task.judge=true", "backbone@roles.judge=embedded")
    ran = launch(tmp_path, "task=inspect", f"task.name={FILE}@asking", *given)
    assert ran.status == 0
    assert ran.metrics["calls"]["evaluate"]["judge"] == 4
    assert ran.metrics["headline"]["after"] == 100.0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["task.name=null"], "task.name is not set: give the task as FILE.py@task or package/task"),
        ([f"task.name={FILE}@nothing"], "cannot be loaded"),
        (["task.name=nowhere.py@task"], "cannot be loaded"),
        ([f"task.name={FILE}"], "is a file: name one of its tasks as"),
        ([f"task.name={FILE}@choices", "task.args={colour: red}"], "has no argument colour; there are lands"),
        ([f"task.name={FILE}@choices", "task.args={lands: 2}"], "task.split_ratio: 2 samples are too few for"),
        ([f"task.name={FILE}@choices", "task.split_ratio.test=0"], "need a share above 0"),
        ([f"task.name={FILE}@in_docker"], "has sandbox, which is not supported"),
        ([f"task.name={FILE}@judged"], "is graded by a model (model_graded_qa): set task.judge=true"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(asked, said, tmp_path, capsys):
    assert said in refusal(["task=inspect", *asked], tmp_path / "results", capsys)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["lookup", "task.args={name: broken}"], "RuntimeError: the atlas burnt down"),
        (["lookup", "task.args={name: hanging}", "task.timeout=0.5"], "did nothing for 0.5 s (task.timeout)"),
        (["unscorable"], "KeyError: 'no such column'"),
        (["asking"], "the scorer calls a model: allow it by task.judge=true"),
    ],
)
def test_an_environment_that_fails_is_a_fault_of_the_task(asked, said, tmp_path):
    name, *more = asked
    given = ("method=base", "limit=1", "mode.before=false", f"task.name={FILE}@{name}", *more)
    ran = launch(tmp_path, "task=inspect", *given)
    assert ran.status == 0
    assert ran.metrics["headline"]["after"] == 0.0
    fault = _rollouts(ran)[-1]["fault"]
    assert fault["owner"] == "task"
    assert said in fault["message"]


def _rollouts(ran):
    lines = (json.loads(line) for line in (ran.folder / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if "attempt" in line]


@pytest.mark.parametrize(("labels", "shown"), [("gold", True), ("correctness", False), ("none", False)])
def test_targets_and_scores_reach_only_the_prompts_that_labels_allow(labels, shown, tmp_path):
    made = []

    def recording(inner):
        made.append(Recording(inner))
        return made[-1]

    given = ("mode.epochs=1", f"labels={labels}", f"task.name={FILE}@secret")
    assert launch(tmp_path, "task=inspect", *given, backbone=recording).status == 0
    asked = made[0].asked
    learnt = [text for role, _, text in asked if role == "reflector"]
    assert any("planted-target" in text for text in learnt) == shown
    assert any("not correct" in text.partition("<environment_feedback>")[2] for text in learnt) == (labels != "none")
    assert not any("planted-target" in text for role, _, text in asked if role == "generator" and not shown)
