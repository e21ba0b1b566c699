"""ReasoningBank and MaTTS: what the extractor is shown, what is kept of its replies, and what a sample is shown."""

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Turn
from ace_field.attempts import ShownAttempts
from ace_field.awm import Solved
from tests.launching import composed, launch
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, events_of, item, learn, titles
from tests.runners.scripted import answer, gold


def test_successes_and_failures_both_teach_and_reference_shows_the_answers_of_failures(tmp_path):
    ran, script = learn(tmp_path, "reasoning_bank", "method.reference=true", test=4)
    said = ("succeeded", "failed", "succeeded", "failed")
    assert titles(ran) == [f"{word} on toy-test-{number}" for number, word in enumerate(said)]
    assert [one["success"] for one in context_of(ran)["experiences"]] == [True, False, True, False]
    assert ran.metrics["calls"]["adapt"] == {"generator": 4, "extractor": 4}
    assert ran.metrics["operations"] == {"extracted_success": 2, "extracted_failure": 2}
    right, wrong, *_ = (call.prompt for call in script.of("extractor"))
    assert "<reference_answer>" not in right
    assert "<reference_answer>\ngold of toy-test-1\n" in wrong


def test_items_beyond_the_limit_are_refused_and_a_reply_without_any_leaves_no_experience(tmp_path):
    many = {"memory_items": [item(f"number {n}") for n in range(5)]}
    ran, script = learn(tmp_path / "many", "reasoning_bank", "method.most_items=2", extractor=lambda _: many, test=1)
    assert titles(ran) == ["number 0", "number 1"]
    assert len(events_of(ran, "refused")) == 3
    assert "At most 2 items" in script.of("extractor")[0].prompt
    ran, _ = learn(tmp_path / "none", "reasoning_bank", extractor=lambda _: {"memory_items": []}, test=1)
    assert context_of(ran)["experiences"] == []


def test_the_authors_items_are_markdown_that_is_shown_as_it_was_written(tmp_path):
    def written(call):
        return f"# Memory Item 1\n## Title of {call.sample}\n\n## Content {{x}}\n"

    ran, script = learn(tmp_path, "reasoning_bank", "method.protocol=authors", extractor=written, test=2)
    assert ["# Memory Item <its number>" in call.prompt for call in script.of("extractor")] == [True, True]
    shown_text = "<memory_items>\n# Memory Item 1\n## Title of toy-test-0\n\n## Content {x}\n</memory_items>"
    assert shown_text in script.of("generator")[1].prompt
    assert [(one["success"], one["items"]) for one in context_of(ran)["experiences"]] == [(True, []), (False, [])]
    settings = ("task=formula", "task.source=sample", "method=reasoning_bank", "method.protocol=authors")
    assert launch(tmp_path, *settings, "method.reference=true").status == 2
    config = composed("method=reasoning_bank", "protocol=official", "mode=online")[0]
    assert (config.method.protocol, config.sampling.extractor.temperature) == ("authors", 1.0)


def second_right(call):
    """Right on the second attempt alone."""
    return answer(gold(call.sample) if call.trial == 1 else f"guess {call.trial}")


def heads(prompt):
    return [line.partition(": ")[2] for line in prompt.splitlines() if line.startswith("## Attempt")]


def test_independent_attempts_are_contrasted_in_one_extraction(tmp_path):
    ran, script = learn(tmp_path, "matts", "labels=correctness", generator=second_right, test=2)
    assert ran.metrics["calls"]["adapt"] == {"generator": 6, "extractor": 2}
    prompt = script.of("extractor")[0].prompt
    assert heads(prompt) == ["failed", "succeeded", "failed"]
    assert "thought of guess 2\n\nAnswer: guess 2\nFeedback: The answer is not correct." in prompt
    assert "The attempts are independent" in prompt
    assert "At most 5 items" in prompt
    assert [one["success"] for one in context_of(ran)["experiences"]] == [True, True]
    assert events_of(ran, "contrasted")[0]["successes"] == 1
    assert ran.metrics["headline"]["after"] == 0.0, "the first attempt is the answer"
    assert "<earlier_attempt>" not in "".join(call.prompt for call in script.of("generator"))


def test_sequential_attempts_look_the_one_before_over_again(tmp_path):
    settings = ("labels=correctness", "method.scaling=sequential")
    _, script = learn(tmp_path, "matts", *settings, generator=second_right, test=1)
    first, second, third = (call.prompt for call in script.of("generator"))
    assert "earlier_attempt" not in first
    assert "<earlier_attempt>\nthought of guess 0\n\nAnswer: guess 0\n</earlier_attempt>" in second
    assert "guess 0" not in third
    assert f"Answer: {gold('toy-test-0')}\n</earlier_attempt>" in third
    assert "looked the one before over again" in script.of("extractor")[0].prompt


def test_attempts_are_judged_where_verdicts_are_hidden_and_lost_ones_left_out(tmp_path):
    ran, script = learn(
        tmp_path,
        "matts",
        "labels=none",
        generator=lambda call: BROKEN if call.trial == 0 else second_right(call),
        self_judge=lambda call: {"reasoning": "so it seems", "success": call.trial == 2},
        test=1,
    )
    assert ran.metrics["calls"]["adapt"] == {"generator": 2, "extractor": 1, "self_judge": 2}
    prompt = script.of("extractor")[0].prompt
    assert prompt.count("so it seems") == 2
    assert heads(prompt) == ["failed", "succeeded"]


def test_the_longest_attempt_in_a_prompt_gives_way_first_and_then_the_first():
    turns = tuple(Turn(action="look()", observation="x") for _ in range(4))
    attempts = ShownAttempts((Solved.text("one"), Solved(steps=Transcript(turns))))
    assert [one.steps.size for one in attempts.shrink().items] == [0, 3]
    bare = ShownAttempts((Solved.text("one"), Solved.text("two")))
    assert bare.shrink().items == (Solved.text("two"),)
    assert bare.shrink().shrink() is None
