"""Evo-Memory's baselines: which attempts a prompt shows, with what, and what thinking and refining change."""

from ace_bench.core.types import Attempt, Feedback, Rollout, Sample, Turn
from ace_field.experiences import Experiences, FullHistory


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
