"""Agent Workflow Memory: what its inducer is shown, what joins the memory, and what every sample is shown."""

from tests.packages.field.making import TOO_LONG, events_of, learn, note_workflow, titles, workflow
from tests.runners.scripted import right, steps


def test_no_reply_fills_the_memory_and_no_routine_is_kept_twice(tmp_path):
    many = [workflow(f"number {n}") for n in range(40)]
    ran, _ = learn(tmp_path, "awm", inducer=lambda _: {"workflows": many}, generator=right, test=2)
    assert titles(ran) == [f"number {n}" for n in range(30)]
    assert len(events_of(ran, "refused")) == 20
    assert [event["known"] for event in events_of(ran, "induced")] == [0, 30]


def test_the_successes_of_a_batch_are_induced_together(tmp_path):
    ran, script = learn(tmp_path, "awm", "mode.batch_size=4", mode="offline", train=4, test=1)
    (call,) = script.of("inducer")
    assert [f"Question: ask toy-train-{n}?" in call.prompt for n in range(4)] == [True, False, True, False]
    assert steps(ran)[0]["events"][-1]["from"] == 2


def test_offline_workflows_come_from_reference_answers_before_any_attempt(tmp_path):
    inducer = lambda call: {"workflows": [workflow(call.session)]}  # noqa: E731
    ran, script = learn(tmp_path, "awm_offline", "method.examples=3", mode="offline", inducer=inducer)
    first, second = (call.prompt for call in script.of("inducer"))
    assert [f"gold of toy-train-{n}" in first for n in range(4)] == [True, True, True, False]
    assert "gold of toy-train-3" in second
    assert "toy-test" not in first + second
    assert ran.metrics["rollouts"]["adapt"] == 0
    assert len(titles(ran)) == 2
    _, script = learn(tmp_path / "whole", "awm_offline", "method.examples=null", mode="offline")
    assert len(script.of("inducer")) == 1


def test_a_prompt_that_is_too_long_is_sent_with_fewer_examples(tmp_path):
    cramped = lambda call: TOO_LONG if "train-1" in call.prompt else note_workflow(call)  # noqa: E731
    ran, _ = learn(tmp_path, "awm_offline", mode="offline", inducer=cramped)
    assert events_of(ran, "dropped_from_prompt")[0]["items"] == 2
    assert len(titles(ran)) == 1
