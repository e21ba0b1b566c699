"""The judge: what it sees, when it is asked, and what becomes of its verdicts and failures."""

from __future__ import annotations

import json

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.resources import prompts_folder
from ace_bench.core.types import NO_USAGE, Completion
from ace_bench.store.prompts import PromptSet
from tests.launching import launch

PROMPTS = PromptSet(prompts_folder() / "default", task="bird_sql", prompt_group="qa")
RIGHT, WRONG = (
    '{"reason": "the same", "verdict": "correct"}',
    '{"reason": "a filter is missing", "verdict": "incorrect"}',
)


class Judge:
    """A scripted judge: gives its replies in turn and keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.asked: list[str] = []
        self.schemas: list[object] = []

    def __call__(self, messages, schema=None):
        self.asked.append("\n".join(message.content for message in messages))
        self.schemas.append(schema)
        return Completion(text=self._replies.pop(0), usage=NO_USAGE, seconds=0.0)


def judged(task, answer, judge, split="test"):
    sample = task.samples(split)[0]
    with task.open(sample) as session:
        gold = session.grade(None).gold
        return task.judge(sample, answer or gold, session.grade(answer or gold), PROMPTS, judge), sample, gold


@pytest.mark.parametrize(("reply", "right"), [(RIGHT, True), (WRONG, False)])
def test_the_verdict_is_the_grade(reply, right, make):
    task, judge = make(metric="judge"), Judge(reply)
    grade, _, _ = judged(task, "SELECT 'something else'", judge)
    assert (grade.correct, grade.score, grade.detail["judge"]) == (right, float(right), float(right))
    assert grade.detail["execution"] == 0.0
    assert task.score([grade])["judge"] == 100.0 * right
    assert task.score([grade])["execution"] == 0.0


def test_the_judge_sees_question_schema_and_both_queries_and_no_results(make):
    judge = Judge(RIGHT)
    grade, sample, gold = judged(make(metric="judge"), "```sql\nSELECT 'prediction'\n```", judge)
    (asked,) = judge.asked
    schema, _, question = sample.inputs["question"].removeprefix("Database schema:\n").partition("\n\nUser question: ")
    for tag, text in (
        ("schema", schema),
        ("question", question),
        ("reference_query", gold),
        ("predicted_query", "SELECT 'prediction'"),
    ):
        assert f"<{tag}>\n{text}\n</{tag}>" in asked
    assert "The query returned" not in asked
    assert "rows" in grade.observed or "row of" in grade.observed
    assert set(judge.schemas[0]["properties"]) == {"reason", "verdict"}


@pytest.mark.parametrize(("answer", "right"), [(None, True), ("", False), ("```sql\n```", False)])
def test_what_needs_no_judge_asks_none(answer, right, make):
    task, judge = make(metric="judge"), Judge()
    sample = task.samples("test")[0]
    with task.open(sample) as session:
        answer = session.grade(None).gold if answer is None else answer
        before = session.grade(answer)
    after = task.judge(sample, answer, before, PROMPTS, judge)
    assert after == before
    assert after.correct is right
    assert not judge.asked


def test_an_unreadable_verdict_is_asked_for_again_and_then_a_fault(make):
    task, judge = make(metric="judge"), Judge("Looks fine to me.", RIGHT)
    assert judged(task, "SELECT 1", judge)[0].correct
    assert len(judge.asked) == 2
    for reply in ("", "{}", '{"reason": "x", "verdict": "perhaps"}', '{"verdict": "correct"}', "[" * 5_000):
        with pytest.raises(RolloutFault) as caught:
            judged(task, "SELECT 1", Judge(reply, reply))
        assert caught.value.fault.owner == "model"


def test_beside_another_metric_only_what_is_reported_is_judged(make):
    task = make(judge="always")
    assert judged(task, "SELECT 1", Judge(), split="train")[0].correct is False
    grade, *_ = judged(task, "SELECT 1", Judge(RIGHT))
    assert (grade.correct, grade.detail["judge"]) == (False, 1.0), "the headline stays execution"
    assert task.score([grade])["judge"] == 100
    assert make().judge_template is None
    assert make(metric="judge").judge_template == "judge"


RUN = ("task=bird_sql", "method=ace", "mode.epochs=1", "limit={train: 4, val: 2, test: 6}", "task.source=sample")


def test_a_run_with_a_judge_counts_its_calls_apart(tmp_path):
    ran = launch(tmp_path, *RUN, "task.metric=judge", "backbone@roles.judge=embedded", backbone=Verdicts)
    assert ran.status == 0
    metrics = ran.metrics
    assert metrics["headline"]["metric"] == "judge"
    assert metrics["calls"]["evaluate"]["judge"] > 0
    assert metrics["faults"]["evaluate"] == {}
    assert {"judge", "execution", "execution_corrected"} <= set(metrics["splits"]["test"]["after"])


@pytest.mark.slow
def test_a_judge_that_fails_leaves_the_execution_metric(tmp_path):
    plain = launch(tmp_path / "plain", *RUN, "labels=none")
    broken = launch(tmp_path / "broken", *RUN, "labels=none", "task.judge=always", backbone=Mute)
    assert broken.status == 0
    after, expected = (ran.metrics["splits"]["test"]["after"] for ran in (broken, plain))
    assert after["execution"] == expected["execution"]
    assert broken.metrics["faults"]["evaluate"]["judge/model/unreadable_reply"] > 0
    assert plain.metrics["faults"]["evaluate"] == {}


class Wrapped:
    """The embedded backbone with another judge."""

    simulated = True
    reply = ""

    def __init__(self, inner):
        self._inner = inner
        self.name, self.identity, self.count = inner.name, inner.identity, inner.count
        self.context_length = inner.context_length

    def complete(self, messages, *, role, session, schema=None):
        if role != "judge":
            return self._inner.complete(messages, role=role, session=session, schema=schema)
        return Completion(text=self.reply, usage=NO_USAGE, seconds=0.0)


class Verdicts(Wrapped):
    reply = json.dumps({"reason": "so it is", "verdict": "correct"})


class Mute(Wrapped):
    reply = "I would rather not say."
