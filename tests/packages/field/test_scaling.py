"""MaTTS: the attempts at a sample, and what is extracted from them together."""

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Turn
from ace_field.attempts import ShownAttempts
from ace_field.awm import Solved
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN
from tests.packages.field.test_reasoning_bank import item, of, titles
from tests.runners.scripted import Scripted, answer, gold, play

ONLINE = ("mode=online", "mode.before=false", "mode.shuffle=false")


def second_right(call):
    """Right on the second attempt alone."""
    return answer(gold(call.sample) if call.trial == 1 else f"guess {call.trial}")


def scaled(tmp_path, *overrides, generator=second_right, test=2, judge=None):
    script = Scripted(
        generator=generator,
        extractor=lambda call: {"memory_items": [item(f"on {call.sample}")]},
        self_judge=judge or (lambda _: {"success": True}),
    )
    ran = play(tmp_path, *ONLINE, "labels=correctness", *overrides, script=script, method="matts", test=test)
    assert ran.status == 0
    return ran, script


def test_independent_attempts_are_contrasted_in_one_extraction(tmp_path):
    ran, script = scaled(tmp_path)
    assert ran.metrics["calls"]["adapt"] == {"generator": 6, "extractor": 2}
    prompt = script.of("extractor")[0].prompt
    heads = [line for line in prompt.splitlines() if line.startswith("## Attempt")]
    assert heads == ["## Attempt 1: failed", "## Attempt 2: succeeded", "## Attempt 3: failed"]
    assert "thought of guess 2\n\nAnswer: guess 2\nFeedback: The answer is not correct." in prompt
    assert "The attempts are independent" in prompt
    assert "At most 5 items" in prompt
    assert titles(ran) == ["on toy-test-0", "on toy-test-1"]
    assert [one["success"] for one in context_of(ran)["experiences"]] == [True, True]
    assert of(ran, "contrasted")[0]["successes"] == 1
    assert ran.metrics["headline"]["after"] == 0.0, "the first attempt is the answer"
    assert "<earlier_attempt>" not in "".join(call.prompt for call in script.of("generator"))


def test_sequential_attempts_look_the_one_before_over_again(tmp_path):
    _, script = scaled(tmp_path, "method.scaling=sequential", test=1)
    first, second, third = (call.prompt for call in script.of("generator"))
    assert "earlier_attempt" not in first
    assert "<earlier_attempt>\nthought of guess 0\n\nAnswer: guess 0\n</earlier_attempt>" in second
    assert "guess 0" not in third
    assert f"Answer: {gold('toy-test-0')}\n</earlier_attempt>" in third
    assert "looked the one before over again" in script.of("extractor")[0].prompt


def test_attempts_are_judged_where_verdicts_are_hidden_and_lost_ones_left_out(tmp_path):
    ran, script = scaled(
        tmp_path,
        "labels=none",
        generator=lambda call: BROKEN if call.trial == 0 else second_right(call),
        judge=lambda call: {"reasoning": "so it seems", "success": call.trial == 2},
        test=1,
    )
    assert ran.metrics["calls"]["adapt"] == {"generator": 2, "extractor": 1, "self_judge": 2}
    prompt = script.of("extractor")[0].prompt
    assert prompt.count("so it seems") == 2
    assert [line[14:] for line in prompt.splitlines() if line.startswith("## Attempt")] == ["failed", "succeeded"]
    ran, _ = scaled(tmp_path / "none", generator=lambda _: BROKEN, test=1)
    assert (ran.metrics["operations"], context_of(ran)["experiences"]) == ({"skipped": 1}, [])


def test_the_longest_attempt_in_a_prompt_gives_way_first_and_then_the_first():
    turns = tuple(Turn(action="look()", observation="x") for _ in range(4))
    shown = ShownAttempts((Solved.text("one"), Solved(steps=Transcript(turns))))
    assert [one.steps.size for one in shown.shrink().items] == [0, 3]
    bare = ShownAttempts((Solved.text("one"), Solved.text("two")))
    assert bare.shrink().items == (Solved.text("two"),)
    assert bare.shrink().shrink() is None
