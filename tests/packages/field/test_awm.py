"""Agent Workflow Memory: what its inducer is shown, what joins the memory, and what every sample is shown."""

import pytest

from tests.launching import launch
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, TOO_LONG, even_right
from tests.runners.scripted import Scripted, Toy, answer, events, gold, play, steps


def workflow(title, *more, description="when asked"):
    return {"title": title, "description": description, "steps": ["look", f"do as in {title}", *more]}


def routine(call):
    """An inducer that finds one routine, named after the sample."""
    return {"workflows": [workflow(f"saw {call.sample}")]}


def awm(tmp_path, *overrides, mode="online", method="awm", inducer=routine, generator=even_right, judge=None, **sizes):
    script = Scripted(generator=generator, inducer=inducer, self_judge=judge or (lambda _: {"success": True}))
    settings = (f"mode={mode}", "mode.before=false", "mode.shuffle=false", *overrides)
    ran = play(tmp_path, *settings, script=script, method=method, **sizes)
    assert ran.status == 0
    return ran, script


def titles(ran):
    return [one["title"] for one in context_of(ran)["items"]]


def of(events_, kind):
    return [event for event in events_ if event["event"] == kind]


def test_only_successful_attempts_become_workflows_and_every_later_sample_sees_all_of_them(tmp_path):
    ran, script = awm(tmp_path, "labels=correctness", test=5)
    assert titles(ran) == [f"saw toy-test-{n}" for n in (0, 2, 4)]
    last = next(call.prompt for call in script.of("generator") if call.sample == "toy-test-4")
    assert "## saw toy-test-0\nwhen asked\n1. look\n2. do as in saw toy-test-0\n\n## saw toy-test-2" in last
    assert ran.metrics["calls"]["adapt"] == {"generator": 5, "inducer": 3}
    assert ran.metrics["operations"] == {"induced": 3, "skipped": 2}


def test_where_verdicts_are_hidden_the_model_judges_its_attempts_itself(tmp_path):
    def judge(call):
        assert "<predicted_answer>" in call.prompt
        return {"reasoning": "by itself", "success": call.sample.endswith(("1", "2"))}

    ran, _ = awm(tmp_path, "labels=none", judge=judge, test=4)
    assert titles(ran) == ["saw toy-test-1", "saw toy-test-2"]  # the first of them is wrong
    assert ran.metrics["operations"] == {"judged_failure": 2, "judged_success": 2, "induced": 2, "skipped": 2}
    assert ran.metrics["calls"]["adapt"]["self_judge"] == 4


@pytest.mark.parametrize("reply", ["no JSON", {"success": "perhaps"}, BROKEN], ids=["text", "no verdict", "refused"])
def test_an_attempt_without_a_verdict_teaches_nothing(reply, tmp_path):
    ran, script = awm(tmp_path, "labels=none", judge=lambda _: reply, test=2)
    assert titles(ran) == []
    assert script.of("inducer") == []
    failed = [*ran.metrics["faults"]["adapt"].values(), *ran.metrics["unreadable_replies"]["adapt"].values()]
    assert failed == [2]


def test_a_failed_rollout_teaches_nothing(tmp_path):
    ran, script = awm(tmp_path, "labels=none", generator=lambda _: BROKEN, test=2)
    assert script.of("self_judge") == script.of("inducer") == []
    assert ran.metrics["operations"] == {"skipped": 2}


@pytest.mark.parametrize(
    "reply", ["no JSON", {"workflows": "many"}, {}, BROKEN], ids=["text", "wrong type", "nothing", "refused"]
)
def test_a_reply_that_cannot_be_read_is_a_fault_and_teaches_nothing(reply, tmp_path):
    ran, _ = awm(tmp_path, inducer=lambda _: reply, test=1)
    assert titles(ran) == []
    (fault,) = of(events(ran), "fault")
    assert fault["role"] == "inducer"


@pytest.mark.parametrize(
    "bad",
    [
        5,
        {"title": "one step", "steps": ["alone"]},
        {"title": "", "steps": ["a", "b"]},
        {"title": "blank", "steps": ["a", " \n"]},
        {"title": "t" * 201, "steps": ["a", "b"]},
        {"title": "long", "steps": ["a", "b" * 8_001]},
        {"title": "many", "steps": ["a"] * 31},
        {"title": "nested", "steps": [["a"], ["b"]]},
    ],
    ids=lambda bad: str(bad)[:40],
)
def test_a_workflow_that_cannot_be_used_is_refused_by_itself(bad, tmp_path):
    ran, _ = awm(tmp_path, inducer=lambda _: {"workflows": [workflow("one"), bad, workflow("two")]}, test=1)
    assert titles(ran) == ["one", "two"]
    (refused,) = of(events(ran), "refused")
    assert (refused["role"], refused["item"]) == ("inducer", 1)


def test_no_reply_fills_the_memory_and_no_routine_is_kept_twice(tmp_path):
    many = [workflow(f"number {n}") for n in range(40)]
    ran, _ = awm(tmp_path, inducer=lambda _: {"workflows": many}, generator=lambda c: answer(gold(c.sample)), test=2)
    assert titles(ran) == [f"number {n}" for n in range(30)]
    assert len(of(events(ran), "refused")) == 20
    assert [event["known"] for event in of(events(ran), "induced")] == [0, 30]


def test_the_successes_of_a_batch_are_induced_together(tmp_path):
    ran, script = awm(tmp_path, "mode.batch_size=4", mode="offline", train=4, test=1)
    (call,) = script.of("inducer")
    assert [f"Question: ask toy-train-{n}?" in call.prompt for n in range(4)] == [True, False, True, False]
    assert steps(ran)[0]["events"][-1]["from"] == 2


def test_the_authors_induce_all_workflows_anew_from_all_successes_so_far(tmp_path):
    settings = ("labels=correctness", "method.protocol=authors")
    ran, script = awm(tmp_path, *settings, inducer=lambda c: "no" if c.sample.endswith("4") else routine(c), test=5)
    shown = [[f"Question: ask toy-test-{n}?" in call.prompt for n in range(5)] for call in script.of("inducer")]
    assert shown[-1] == [True, False, True, False, True]
    assert shown[:2] == [[True] + [False] * 4, [True, False, True, False, False]]
    assert titles(ran) == ["saw toy-test-2"]  # the last reply could not be read
    assert [event["from"] for event in of(events(ran), "induced")] == [1, 2]
    initial = f"method.initial={ran.folder / 'contexts' / 'final.json'}"
    assert launch(tmp_path, "task=formula", "task.source=sample", "method=awm", *settings, initial).status == 2


def test_offline_workflows_come_from_reference_answers_before_any_attempt(tmp_path):
    settings = {"mode": "offline", "method": "awm_offline"}
    ran, script = awm(tmp_path, "method.examples=3", inducer=lambda c: {"workflows": [workflow(c.session)]}, **settings)
    first, second = (call.prompt for call in script.of("inducer"))
    assert [f"gold of toy-train-{n}" in first for n in range(4)] == [True, True, True, False]
    assert "gold of toy-train-3" in second
    assert "toy-test" not in first + second
    assert ran.metrics["rollouts"]["adapt"] == 0
    assert len(titles(ran)) == 2
    _, script = awm(tmp_path / "whole", "method.examples=null", **settings)
    assert len(script.of("inducer")) == 1


def test_a_prompt_that_is_too_long_is_sent_with_fewer_examples(tmp_path):
    def cramped(call):
        return TOO_LONG if "train-1" in call.prompt else routine(call)

    ran, _ = awm(tmp_path, mode="offline", method="awm_offline", inducer=cramped)
    assert of(events(ran), "dropped_from_prompt")[0]["items"] == 2
    assert len(titles(ran)) == 1


def test_a_memory_that_is_too_long_loses_its_oldest_workflows_in_the_prompt_alone(tmp_path):
    def cramped(call):
        return TOO_LONG if call.prompt.count("## saw") > 2 else answer(gold(call.sample))

    ran, script = awm(tmp_path, generator=cramped, test=4)
    last = script.of("generator")[-1].prompt
    assert [f"## saw toy-test-{n}" in last for n in range(3)] == [False, True, True]
    assert len(titles(ran)) == 4


def test_saved_workflows_are_where_a_run_starts_and_what_frozen_shows(tmp_path):
    ran, _ = awm(tmp_path, "labels=correctness", test=3)
    saved = ran.folder / "contexts" / "final.json"
    again, script = awm(tmp_path / "again", f"method.initial={saved}", generator=lambda _: BROKEN, test=1)
    assert titles(again) == titles(ran)
    shown = {"## saw toy-test-0" in call.prompt for call in script.of("generator")}
    frozen = Scripted(generator=even_right)
    settings = ("task=formula", "task.source=sample", "method=frozen", "mode=evaluate", f"mode.context={saved}")
    assert launch(tmp_path / "frozen", *settings, backbone=lambda _: frozen, task=lambda _: Toy()).status == 0
    assert {"## saw toy-test-0" in call.prompt for call in frozen.of("generator")} == shown == {True}
