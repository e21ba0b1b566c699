"""Evo-Memory's baselines: which attempts a prompt shows, with what, and what thinking and refining change."""

import pytest

from ace_bench.core.types import Attempt, Feedback, Rollout, Sample, Turn
from ace_field.experiences import Experiences, FullHistory
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, TOO_LONG, events_of, learn, prompts_of, shown


def attempts(folder, method, *settings, refiner=None, **more):
    script = refiner or (lambda _: {"operation": "act"})
    ran, script = learn(folder, method, "labels=correctness", *settings, refiner=script, **more)
    return ran, prompts_of(script), script


def test_an_agents_attempt_keeps_its_steps_and_drops_the_oldest_outputs_of_long_ones():
    turns = tuple(Turn(action=f"look({n})", observation=f"page {n} " + "x" * 4_000) for n in range(8))
    rollout = Rollout(
        key="k", sample=Sample(id="a", split="test", inputs={"background": "", "question": "Do it."}),
        context_digest="", trial=0, attempt=Attempt(answer=None, trajectory=turns, ended="completed"),
        feedback=Feedback(correct=False, message="The answer is not correct.\ngold", gold="gold", report="gold"),
        fault=None, calls=1, seconds=0.0,
    )  # fmt: skip
    text = FullHistory(fill=0.5).text(rollout, Experiences())
    assert text.startswith("Question: Do it.\nAnswer: \n### Step 1\n```python\nlook(0)\n```")
    assert ("page 0" in text, "page 7" in text) == (False, True)
    assert text.endswith("\nFeedback: The answer is not correct.")


def test_what_is_dropped_leaves_the_memory_and_notes_stay(tmp_path):
    def tidy(call):
        if call.sample.endswith("2") and "[1]" in call.prompt and "Note:" not in call.prompt:
            drops = [n for n in (1, 2) if f"[{n}]\nQuestion: ask toy-test-0?" in call.prompt]
            (other,) = {1, 2} - {*drops}
            return {"operation": "refine", "drop": [*drops, 9], "notes": [{"number": other, "note": "mind the step"}]}
        return {"operation": "act"}

    ran, prompts, _ = attempts(tmp_path, "remem", refiner=tidy, test=4)
    assert (shown(prompts["toy-test-1"]), shown(prompts["toy-test-2"])) == ([0], [1])
    assert "\nNote: mind the step" in prompts["toy-test-2"]
    assert [pair["question"][-2] for pair in context_of(ran)["pairs"]] == ["1", "2", "3"]
    (refined,) = events_of(ran, "refined")
    assert (refined["sample"], refined["dropped"], refined["unknown"]) == ("toy-test-2", 1, [9])


def test_a_later_note_replaces_one_and_a_prompt_that_is_too_long_shows_fewer_attempts(tmp_path):
    def cramped(call):
        if "[1]" in call.prompt and "[2]" in call.prompt:
            return TOO_LONG
        return {"operation": "refine", "notes": [{"number": 2, "note": f"seen\nby {call.sample}"}]}

    ran, prompts, _ = attempts(tmp_path, "remem", "method.top_k=2", "method.rounds=1", refiner=cramped, test=5)
    notes = [line for line in prompts["toy-test-4"].splitlines() if line.startswith("Note: ")]
    assert notes == ["Note: seen by toy-test-4"]
    assert [event["items"] for event in events_of(ran, "dropped_from_prompt")] == [1] * 3


@pytest.mark.parametrize("reply", [{"operation": "sleep"}, BROKEN], ids=["unknown", "refused"])
def test_a_refiner_that_cannot_be_read_is_a_fault_and_the_attempt_goes_on(reply, tmp_path):
    ran, _, _ = attempts(tmp_path, "remem", refiner=lambda _: reply, test=2)
    assert [event["role"] for event in events_of(ran, "fault")] == ["refiner"] * 2
    assert len(context_of(ran)["pairs"]) == 2
