"""Prompts that are too long: what gives way, in which order, and what is never tried again for nothing."""

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompts import CONTEXT_LENGTH, Transcript, estimate_tokens, next_hidden, send_within_limit
from ace_bench.core.types import Attempt, Fault, Feedback, Rollout, Turn
from ace_bench.methods.base import RoleCall, ask_role
from tests.agents.world import sample
from tests.playbook.making import playbook

TURNS = tuple(Turn(action=f"act {n}", observation=f"saw {n}", thought=f"because {n}") for n in range(8))


def refusing(times, kind=CONTEXT_LENGTH):
    tries = []

    def send(shown):
        tries.append(shown)
        if len(tries) <= times:
            raise RolloutFault(Fault(owner="backbone", kind=kind, message="no"))
        return shown

    return send, tries


def test_the_steps_of_an_agent_give_way_before_the_playbook_and_the_newest_output_stays():
    rollout = Rollout(
        key="k",
        sample=sample(),
        context_digest="",
        trial=0,
        attempt=Attempt(answer=None, trajectory=TURNS),
        feedback=Feedback(correct=None, message="", gold=None),
        fault=None,
        calls=0,
        seconds=0.0,
    )
    call = RoleCall(
        arena=None,
        role="reflector",
        template="reflector",
        session="k",
        rollout=rollout,
        playbook=playbook("a", "b", "c", "d"),
        reflection=None,
        fields=lambda _: {},
    )
    send, tries = refusing(9)
    (shown, events) = ask_role("reflector", call, send)
    assert [one.steps.size for one in tries] == [8, 7, 6, 5, 4, 3, 2, 1, 1, 1]
    assert [one.playbook.size for one in tries] == [4] * 8 + [3, 2]
    assert events == ({"event": "dropped_from_prompt", "role": "reflector", "items": 7 + 2},)
    assert "saw 7" in shown.steps.text
    assert "saw 6" not in shown.steps.text
    assert all(f"act {n}" in shown.steps.text and f"because {n}" in shown.steps.text for n in range(8))


def test_nothing_left_to_drop_or_another_fault_is_raised():
    for times, kind, tried in ((99, CONTEXT_LENGTH, 8), (99, "no_reply", 1)):
        send, tries = refusing(times, kind)
        with pytest.raises(RolloutFault):
            send_within_limit(Transcript(TURNS), send)
        assert len(tries) == tried


def test_a_transcript_tells_steps_apart_and_those_without_code():
    text = Transcript((*TURNS[:1], Turn(action="", observation="", thought="hm"))).text
    assert text == "### Step 1\nbecause 0\n```python\nact 0\n```\nOutput:\n```\nsaw 0\n```\n\n### Step 2\nhm\n(no code)"
    assert Transcript(()).text == "(none)"


def test_a_quarter_of_the_outputs_gives_way_at_a_time_and_a_token_is_four_bytes():
    hidden = [0]
    while (more := next_hidden(hidden[-1], 21)) is not None:
        hidden.append(more)
    assert hidden == [0, 5, 8, 11, 13, 14, 15, 16, 17, 18, 19, 20]
    assert [estimate_tokens(text) for text in ("", "abcd", "abcde", "éé", "ééé")] == [0, 1, 2, 1, 2]
