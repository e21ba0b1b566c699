"""Environments that break get a second try at no cost, and judges are asked through the same door as everybody."""

import json
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Fault, Message
from ace_bench.runners.build import _templates
from tests.runners.scripted import Scripted, Toy, ToySession, gold, play, right, rollouts

BASE = {"method": "base"}


class Breaking(Toy):
    """An environment that breaks when it grades, ``times`` times a sample."""

    def __init__(self, times, owner="task", **sizes):
        super().__init__(**sizes)
        self._left = {}
        self._times, self._owner = times, owner

    @contextmanager
    def open(self, sample):
        left = self._left.get(sample.id, self._times)
        self._left[sample.id] = left - 1
        yield BreakingSession(sample, self._owner) if left > 0 else ToySession(sample)

    def failing_grade(self, sample):
        return ToySession(sample).grade(None)


class BreakingSession(ToySession):
    def __init__(self, sample, owner):
        super().__init__(sample)
        self._owner = owner

    def grade(self, answer):
        raise RolloutFault(Fault(owner=self._owner, kind="server_died", message="the environment is gone"))


def text(call):
    return gold(call.sample)


def test_a_broken_environment_gets_a_second_try_that_costs_no_call(tmp_path):
    script = Scripted(generator=text)
    ran = play(tmp_path, script=script, task=lambda **sizes: Breaking(1, **sizes), **BASE)
    assert ran.metrics["headline"]["after"] == 100.0
    assert ran.metrics["restarts"] == {"adapt": 0, "evaluate": 4}
    assert len(script.calls) == ran.metrics["calls"]["evaluate"]["generator"] == 4
    assert [line["restarts"] for line in rollouts(ran, "evaluate")] == [1] * 4


def test_an_environment_that_stays_broken_costs_its_samples(tmp_path):
    ran = play(tmp_path, script=Scripted(generator=text), task=lambda **sizes: Breaking(9, **sizes), **BASE)
    assert ran.status == 0
    assert ran.metrics["splits"]["test"]["after"] == {"n": 4, "faults": 4, "accuracy": 0.0}
    assert ran.metrics["faults"]["evaluate"] == {"generator/task/server_died": 4}


def test_a_fault_of_the_model_gets_no_second_try(tmp_path):
    breaking = lambda **sizes: Breaking(1, owner="model", **sizes)  # noqa: E731
    ran = play(tmp_path, script=Scripted(generator=text), task=breaking, **BASE)
    assert ran.metrics["restarts"]["evaluate"] == 0
    assert ran.metrics["splits"]["test"]["after"]["faults"] == 4


class JudgedToy(Toy):
    """Right is what the judge says is right."""

    judge_template = "judge"

    def prompt_fields(self, inputs, shown):
        return {}

    def judge(self, sample, answer, grade, prompts, lm):
        verdict = lm([Message(role="user", content=f"Is {answer} right for {sample.id}?")]).text
        return replace(grade, correct=verdict == "yes")


def test_a_task_with_half_a_judge_is_refused():
    method = SimpleNamespace(generator=SimpleNamespace(template="generator"), roles={}, answering_roles=("generator",))
    with pytest.raises(TypeError, match=r"names a judge's template and needs the methods `judge` and `prompt_fields`"):
        _templates(method, SimpleNamespace(judge_template="judge"))


def approving(call):
    return "yes" if call.sample != "toy-test-1" else Fault(owner="model", kind="content_filter", message="no")


class JudgeScript(Scripted):
    """Judge sessions are named by sample and answer, so they carry no number of a trial."""

    def complete(self, messages, *, role, session, schema=None):
        return super().complete(messages, role=role, session=f"{session}/0", schema=schema)


def test_a_judge_is_accounted_apart_and_its_fault_leaves_the_grade_and_the_run_alive(tmp_path):
    script = JudgeScript(generator=lambda _: "my own words", judge=approving)
    ran = play(tmp_path, script=script, task=JudgedToy, **BASE)
    assert ran.metrics["headline"]["after"] == 75.0
    assert ran.metrics["calls"]["evaluate"] == {"generator": 4, "judge": 3}
    assert ran.metrics["faults"]["evaluate"] == {"judge/model/content_filter": 1}
    (failed,) = [line for line in rollouts(ran, "evaluate") if line["judge_fault"]]
    assert (failed["sample"], failed["attempt"]["answer"], failed["fault"]) == ("toy-test-1", "my own words", None)


def test_the_same_answer_to_the_same_sample_is_judged_once(tmp_path):
    script = JudgeScript(generator=right, judge=lambda _: "yes")
    ran = play(tmp_path, "mode.before=true", script=script, task=JudgedToy, train=1, test=3)
    evaluated = [json.loads(line) for line in (ran.folder / "calls.jsonl").read_text().splitlines()]
    assert [call["role"] for call in evaluated].count("judge") == 1 + 3, "one in training, three tests seen twice"
    assert ran.metrics["headline"]["before"] == ran.metrics["headline"]["after"] == 100.0
