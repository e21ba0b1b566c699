"""ACE on an agent's trajectories: what its roles are shown, when a retry ends, and what enters the playbook."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import Fault
from tests.agents.world import COMPLETE, PROMPTS, World, code, make_agent, sample
from tests.launching import launch
from tests.methods.playing import starting_from
from tests.runners.scripted import Scripted, Toy, delta, events, kept, reflection, rollouts

GOLD = "good = True  # the reference"
RIGHT = f"good = True\n{COMPLETE}"


class Worlds(Toy):
    """A task of one small world a sample."""

    name, family = "worlds", "agent"

    def samples(self, split):
        return [sample(f"toy-{split}-{n}") for n in range(self._sizes[split])]

    @contextmanager
    def open(self, sample):
        del sample
        yield World(GOLD)


class Acting(Scripted):
    """The ``n``-th try of a training sample takes the ``n``-th list of steps; other samples are solved at once."""

    def __init__(self, *tries: list[str], **scripts: Callable):
        def generator(call):
            if "train" not in call.sample:
                return code(RIGHT)
            steps = tries[min(call.trial, len(tries) - 1)]
            return code(steps[min(call.nth, len(steps) - 1)], f"thought {call.nth} [oth-00007]")

        super().__init__(generator=generator, **scripts)


def play(results, *overrides, script, max_steps=5, memory="off", train=1, task=Worlds, prompts=PROMPTS, method=None):
    def acting(plan):
        agent = make_agent(plan.method.generator, prompts=prompts, max_steps=max_steps, memory=memory)
        method_ = method or plan.method
        return replace(plan, task=task(train=train, val=1, test=1), prompt_set=prompts, agent=agent, method=method_)

    settings = ("task=formula", "task.source=sample", "method=ace", "mode.epochs=1", "mode.before=false")
    return launch(results, *settings, *overrides, backbone=lambda _: script, spec=acting)


@pytest.mark.parametrize(
    ("labels", "verdict", "truth"), [("gold", True, True), ("correctness", True, False), ("none", False, False)]
)
def test_the_reflector_sees_the_steps_and_what_labels_reveal(labels, verdict, truth, tmp_path):
    script = Acting(["x = 1", "print(x + 41)"], [RIGHT])
    ran = play(tmp_path, f"labels={labels}", script=script, max_steps=2)
    assert ran.status == 0
    first = script.of("reflector")[0].prompt
    assert "### Step 2\nthought 1 [oth-00007]\n```python\nprint(x + 41)\n```\nOutput:\n```\n42\n```" in first
    assert "The task was not completed." in first
    assert ("The answer is not correct." in first) is verdict
    assert ("passes: 1, failures: 2" in first, GOLD in first) == (truth, truth)
    assert all(GOLD not in call.prompt for call in script.of("generator"))


LOOPS = [  # labels, overrides, steps by try, tries made, reflections made
    ("gold", (), [["x = 1"], [RIGHT]], 2, 1),
    ("gold", ("method.retries=0",), [["x = 1"]], 1, 1),
    ("correctness", (), [["x = 1"]], 5, 5),
    ("none", (), [["x = 1", COMPLETE], [RIGHT]], 1, 1),
    ("none", ("method.retries=5",), [["x = 1", COMPLETE], ["x = 2", COMPLETE], ["x = 2", COMPLETE]], 3, 2),
    ("none", ("method.retries=1",), [["x = 1", COMPLETE], ["x = 2", COMPLETE]], 2, 2),
]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_retries_end_when_the_outcome_is_known_or_the_actions_repeat_and_the_last_one_is_reflected_on(loop, tmp_path):
    labels, settings, steps, tries, reflections = loop
    script = Acting(*steps)
    ran = play(tmp_path, f"labels={labels}", *settings, script=script)
    assert [line["trial"] for line in rollouts(ran, "adapt")] == list(range(tries))
    assert len(script.of("reflector")) == reflections
    assert len(script.of("curator")) == 1


def test_test_tasks_are_attempted_once_online(tmp_path):
    wrong = Scripted(generator=lambda _: code("x = 1"))
    ran = play(tmp_path, "mode=online", "labels=gold", script=wrong)
    assert [line["trial"] for line in rollouts(ran, "adapt")] == [0]
    assert len(wrong.of("reflector")) == 1


def test_an_attempt_that_was_never_completed_teaches_too(tmp_path):
    script = Acting(["x = 1"], [RIGHT], reflector=lambda _: reflection("complete the task"))
    ran = play(tmp_path, script=script, max_steps=3)
    retry = next(call for call in script.of("generator") if "train" in call.sample and call.trial == 1)
    assert "Key insight: complete the task" in retry.prompt
    assert ran.metrics["rollouts"]["adapt"] == 2
    assert ran.metrics["counters"]["adapt"]["steps"] == 3 + 1
    assert ran.metrics["counters"]["evaluate"]["steps"] == 1
    assert ran.metrics["faults"]["adapt"] == {}


def test_the_curator_sees_the_steps_of_the_try_that_the_reflection_is_about(tmp_path):
    script = Acting(["x = 1"], ["x = 2"], [RIGHT], curator=lambda _: delta("print before you pay"))
    ran = play(tmp_path, script=script, max_steps=1)
    (curator,) = script.of("curator")
    assert "x = 2" in curator.prompt
    assert "x = 1" not in curator.prompt
    assert [bullet["content"] for bullet in kept(ran)] == ["print before you pay"]


@pytest.mark.parametrize("labels", ["gold", "none"])
def test_without_a_reflector_the_curator_sees_the_steps_once(labels, tmp_path):
    script = Acting(["x = 12345"])
    play(tmp_path, "method.reflector=off", f"labels={labels}", script=script, max_steps=1)
    (curator,) = script.of("curator")
    assert curator.prompt.count("x = 12345") == 1
    assert "Feedback: The task was not completed." in curator.prompt
    assert (GOLD in curator.prompt) is (labels == "gold")


def test_bullets_named_in_thoughts_are_tagged_and_the_whole_playbook_is_shown(tmp_path):
    script = Acting([RIGHT], reflector=lambda _: reflection(oth_00007="helpful", oth_00009="harmful"))
    ran = play(
        tmp_path,
        starting_from(tmp_path, "## OTHERS\n[oth-00007] read all pages\n[oth-00009] never guess\n"),
        script=script,
    )
    assert [(b["id"], b["helpful"], b["harmful"]) for b in kept(ran)] == [("oth-00007", 1, 0), ("oth-00009", 0, 0)]
    prompt = script.of("reflector")[0].prompt
    assert "[oth-00009] (others) never guess" in prompt
    assert "<bullets_used>\n[oth-00007] (others) read all pages\n" in prompt


def test_a_trajectory_too_long_for_a_role_loses_its_oldest_outputs(tmp_path):
    def cramped(call):
        if len(call.prompt) > 9_000:
            return Fault(owner="model", kind=CONTEXT_LENGTH, message="too long")
        assert "'3' * 2000" in call.prompt
        assert "3" * 2000 in call.prompt
        assert "0" * 2000 not in call.prompt
        return reflection("short") if "bullet_tags" in call.prompt else delta("short")

    script = Acting([f"print('{n}' * 2000)" for n in range(4)], [RIGHT], reflector=cramped, curator=cramped)
    ran = play(tmp_path, script=script, max_steps=4)
    assert ran.metrics["faults"]["adapt"] == {}
    left_out = {event["role"] for event in events(ran) if event["event"] == "dropped_from_prompt"}
    assert left_out == {"reflector", "curator"}
