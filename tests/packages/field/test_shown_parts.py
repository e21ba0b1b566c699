"""Parts of memories on their own: texts of agents' attempts, and what fits into a prompt."""

import pytest

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Attempt, Feedback, Rollout, Sample, Turn
from ace_field.attempts import ShownAttempts
from ace_field.awm import Solved
from ace_field.experiences import Experiences, FullHistory
from ace_field.long_context import History, Pair
from tests.launching import launch


@pytest.mark.parametrize("other", [(), ("sampling.generator_2.temperature=1",)])
def test_a_run_says_if_one_model_answers_in_every_turn(other, tmp_path, capsys):
    settings = ("task=ddxplus", "task.source=sample", "mode=online", "limit=1", "labels=correctness", *other)
    assert launch(tmp_path, "method=mam_stream_icl", *settings).status == 0
    assert ("one model answers every sample" in capsys.readouterr().out.replace("\n", " ")) == (not other)


def test_a_prompt_shows_the_newest_pairs_that_fit():
    pairs = tuple(Pair(f"q{number}", f"text {number}", tokens) for number, tokens in enumerate((5, 90, 4, 6)))
    assert [pair.question for pair in History(pairs=pairs, room=10).visible().pairs] == ["q2", "q3"]
    assert [pair.question for pair in History(pairs=pairs, room=9).visible().pairs] == ["q3"]
    assert History(pairs=pairs, room=105).visible().pairs == History(pairs=pairs).visible().pairs == pairs
    for size, left in ((8, 6), (5, 3), (4, 3), (1, 0)):
        assert len(History(pairs=(pairs * 2)[:size]).shrink().pairs) == left
    assert History().shrink() is None


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


def test_the_longest_attempt_in_a_prompt_gives_way_first_and_then_the_first():
    turns = tuple(Turn(action="look()", observation="x") for _ in range(4))
    attempts = ShownAttempts((Solved.text("one"), Solved(steps=Transcript(turns))))
    assert [one.steps.size for one in attempts.shrink().items] == [0, 3]
    bare = ShownAttempts((Solved.text("one"), Solved.text("two")))
    assert bare.shrink().items == (Solved.text("two"),)
    assert bare.shrink().shrink() is None
