"""Parts of memories on their own: texts of agents' attempts, and what fits into a prompt."""

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Turn
from ace_bench.methods.field.attempts import ShownAttempts
from ace_bench.methods.field.awm import Solved


def test_the_longest_attempt_in_a_prompt_gives_way_first_and_then_the_first():
    turns = tuple(Turn(action="look()", observation="x") for _ in range(4))
    attempts = ShownAttempts((Solved.text("one"), Solved(steps=Transcript(turns))))
    assert [one.steps.size for one in attempts.shrink().items] == [0, 3]
    bare = ShownAttempts((Solved.text("one"), Solved.text("two")))
    assert bare.shrink().items == (Solved.text("two"),)
    assert bare.shrink().shrink() is None
