"""ReasoningBank and MaTTS: what the extractor is shown, what is kept of its replies, and what a sample is shown."""

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Turn
from ace_field.attempts import ShownAttempts
from ace_field.awm import Solved
from tests.launching import composed
from tests.methods.playing import context_of
from tests.packages.field.making import events_of, item, learn, titles


def test_items_beyond_the_limit_are_refused_and_a_reply_without_any_leaves_no_experience(tmp_path):
    many = {"memory_items": [item(f"number {n}") for n in range(5)]}
    ran, script = learn(tmp_path / "many", "reasoning_bank", "method.most_items=2", extractor=lambda _: many, test=1)
    assert titles(ran) == ["number 0", "number 1"]
    assert len(events_of(ran, "refused")) == 3
    assert "At most 2 items" in script.of("extractor")[0].prompt
    ran, _ = learn(tmp_path / "none", "reasoning_bank", extractor=lambda _: {"memory_items": []}, test=1)
    assert context_of(ran)["experiences"] == []


def test_the_longest_attempt_in_a_prompt_gives_way_first_and_then_the_first():
    turns = tuple(Turn(action="look()", observation="x") for _ in range(4))
    attempts = ShownAttempts((Solved.text("one"), Solved(steps=Transcript(turns))))
    assert [one.steps.size for one in attempts.shrink().items] == [0, 3]
    bare = ShownAttempts((Solved.text("one"), Solved.text("two")))
    assert bare.shrink().items == (Solved.text("two"),)
    assert bare.shrink().shrink() is None


def test_runs_as_the_authors_made_them_sample_the_extractor():
    config = composed("method=reasoning_bank", "protocol=official", "mode=online")[0]
    assert (config.method.protocol, config.sampling.extractor.temperature) == ("authors", 1.0)
