"""The judge: what it sees, when it is asked, and what becomes of its verdicts and failures."""

from __future__ import annotations

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.resources import prompts_folder
from ace_bench.core.types import NO_USAGE, Completion
from ace_bench.runners.composing import compose_run
from ace_bench.store.prompts import PromptSet
from tests.launching import launch
from tests.tasks.judging import RIGHT, WRONG, JudgeSaying

PROMPTS = PromptSet(prompts_folder() / "default", task="bird_sql", prompt_group="qa")


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
    """Grade an answer (``None``: the gold query) to the first sample, and let the judge add its verdict."""
    sample = task.samples(split)[0]
    with task.open(sample) as session:
        answer = session.grade(None).gold if answer is None else answer
        return task.judge(sample, answer, session.grade(answer), PROMPTS, judge)


def test_the_verdict_is_the_grade(make):
    task = make(metric="judge")
    for reply, points in ((RIGHT, 1.0), (WRONG, 0.0)):
        grade = judged(task, "SELECT 'something else'", Judge(reply))
        assert (grade.correct, grade.score, grade.detail["judge"]) == (points == 1, points, points)
        assert task.score([grade])["judge"] == 100 * points
        assert task.score([grade])["execution"] == grade.detail["execution"] == 0


def test_the_judge_sees_question_schema_and_both_queries_and_no_results(make):
    task, judge = make(metric="judge"), Judge(RIGHT)
    grade = judged(task, "```sql\nSELECT 'prediction'\n```", judge)
    (asked,) = judge.asked
    inputs = task.samples("test")[0].inputs
    seen = {"schema": inputs["schema"], "question": inputs["asked"], "reference_query": grade.gold}
    for tag, text in {**seen, "predicted_query": "SELECT 'prediction'"}.items():
        assert f"<{tag}>\n{text}\n</{tag}>" in asked
    assert "The query returned" in grade.observed
    assert "The query returned" not in asked
    assert set(judge.schemas[0]["properties"]) == {"reason", "verdict"}


def test_what_needs_no_judge_asks_none(make):
    task = make(metric="judge")
    for answer, right in ((None, True), ("", False), ("```sql\n```", False)):
        assert judged(task, answer, Judge()).correct is right


def test_an_unreadable_verdict_is_asked_for_again_and_then_a_fault(make):
    task, judge = make(metric="judge"), Judge("Looks fine to me.", RIGHT)
    assert judged(task, "SELECT 1", judge).correct
    assert len(judge.asked) == 2
    for reply in ("", "{}", '{"reason": "x", "verdict": "perhaps"}', '{"verdict": "correct"}', "[" * 5_000):
        with pytest.raises(RolloutFault) as caught:
            judged(task, "SELECT 1", Judge(reply, reply))
        assert caught.value.fault.owner == "model"


def test_beside_another_metric_only_what_is_reported_is_judged(make):
    task = make(judge="always")
    assert judged(task, "SELECT 1", Judge(), split="train").correct is False
    grade = judged(task, "SELECT 1", Judge(RIGHT))
    assert (grade.correct, grade.detail["judge"]) == (False, 1.0), "the headline stays execution"
    assert task.score([grade])["judge"] == 100
    fields = {"judge": {"schema", "question", "gold", "predicted"}}
    for asked, metric in (({}, "execution"), (fields, "judge")):
        assert make(metric=metric).prompt_fields(frozenset(), frozenset()) == asked


RUN = (
    "task=bird_sql",
    "method=base",
    "limit={test: 6}",
    "task.source=sample",
    "task.judge=always",
    "task.metric=execution",
)


@pytest.mark.parametrize(
    ("words", "metric"),
    [
        ([], "execution"),
        (["task.judge=always"], "judge"),
        (["backbone@roles.judge=gpt_4o_mini"], "judge"),
        (["backbone@roles.judge=gpt_4o_mini", "task.judge=never"], "execution"),
        (["backbone@roles.judge=gpt_4o_mini", "task.metric=bird_ex"], "bird_ex"),
    ],
)
def test_the_headline_is_the_papers_where_a_judge_is_set_up(words, metric):
    assert compose_run(["task=bird_sql", *words]).settings["task"]["metric"] == metric


@pytest.mark.parametrize(("said", "score"), [(RIGHT, 100.0), (WRONG, 0.0)])
def test_a_judge_that_is_set_up_gives_the_headline(said, score, tmp_path, capsys):
    words = ("task=bird_sql", "method=base", "limit={test: 4}", "task.source=sample", "backbone@roles.judge=embedded")
    metrics = launch(tmp_path, *words, backbone=lambda inner: JudgeSaying(inner, said)).metrics
    headline = metrics["headline"]
    assert (headline["metric"], headline["after"]) == ("judge", score)
    assert "the headline is judge, as in the paper" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("said", [RIGHT, pytest.param("No.", marks=pytest.mark.slow)])
def test_calls_of_the_judge_are_counted_apart_and_its_failures_leave_the_execution_metric(said, tmp_path):
    metrics = launch(tmp_path, *RUN, backbone=lambda inner: JudgeSaying(inner, said)).metrics
    after, fails = metrics["splits"]["test"]["after"], said != RIGHT
    assert metrics["headline"]["metric"] == "execution"
    assert metrics["calls"]["evaluate"]["judge"] > 0
    assert (after["judge"] > after["execution"]) is not fails
    assert (metrics["faults"]["evaluate"] == {}) is not fails
    assert set(metrics["faults"]["evaluate"]) <= {"judge/model/unreadable_reply"}
