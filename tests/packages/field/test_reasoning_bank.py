"""ReasoningBank: what its extractor is shown, what it keeps of its replies, and which items a sample is shown."""

import pytest

from tests.launching import composed, launch
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, TOO_LONG, Themed, even_right
from tests.runners.scripted import Scripted, Toy, events, play


def item(title, content="do so"):
    return {"title": title, "description": "in short", "content": content}


def noted(call):
    """An extractor that names the sample and what it was told of the attempt."""
    told = "succeeded" if "an attempt that succeeded" in call.prompt else "failed"
    return {"memory_items": [item(f"{told} on {call.sample}")]}


def bank(tmp_path, *overrides, mode="online", extractor=noted, generator=even_right, judge=None, task=Toy, **sizes):
    script = Scripted(generator=generator, extractor=extractor, self_judge=judge or (lambda _: {"success": True}))
    settings = (f"mode={mode}", "mode.before=false", "mode.shuffle=false", *overrides)
    ran = play(tmp_path, *settings, script=script, method="reasoning_bank", task=task, **sizes)
    assert ran.status == 0
    return ran, script


def titles(ran):
    return [one["title"] for experience in context_of(ran)["experiences"] for one in experience["items"]]


def of(ran, kind):
    return [event for event in events(ran) if event["event"] == kind]


def shown(prompt):
    """The titles of the items in a prompt, in order."""
    text = prompt.partition("<memory_items>\n")[2].partition("\n</memory_items>")[0]
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_successes_and_failures_both_teach(tmp_path):
    ran, script = bank(tmp_path, "labels=correctness", test=4)
    assert titles(ran) == [
        "succeeded on toy-test-0",
        "failed on toy-test-1",
        "succeeded on toy-test-2",
        "failed on toy-test-3",
    ]
    assert [one["success"] for one in context_of(ran)["experiences"]] == [True, False, True, False]
    assert ran.metrics["calls"]["adapt"] == {"generator": 4, "extractor": 4}
    assert ran.metrics["operations"] == {"extracted_success": 2, "extracted_failure": 2}
    assert script.of("self_judge") == []


def test_where_verdicts_are_hidden_the_model_judges_its_attempts_itself(tmp_path):
    def judge(call):
        return {"reasoning": f"because of {call.sample}", "success": call.sample.endswith("1")}

    ran, script = bank(tmp_path, "labels=none", judge=judge, test=2)
    assert titles(ran) == ["failed on toy-test-0", "succeeded on toy-test-1"]  # the judge errs on both
    assert ran.metrics["calls"]["adapt"]["self_judge"] == 2
    assert all(f": because of {call.sample}\n</judgement>" in call.prompt for call in script.of("extractor"))


def test_with_reference_the_extractor_is_shown_that_of_failures(tmp_path):
    _, script = bank(tmp_path, "method.reference=true", test=2)
    right, wrong = (call.prompt for call in script.of("extractor"))
    assert "<reference_answer>" not in right
    assert "<reference_answer>\ngold of toy-test-1\n" in wrong


def test_a_sample_is_shown_the_items_of_the_most_similar_questions_first(tmp_path):
    def two(call):
        return {"memory_items": [item(f"{call.sample} a"), item(f"{call.sample} b")]}

    _, script = bank(tmp_path / "one", extractor=two, task=Themed, test=7)
    prompts = {call.sample: call.prompt for call in script.of("generator")}
    assert shown(prompts["toy-test-0"]) == []
    last = shown(prompts["toy-test-6"])
    assert [title[-1] for title in last] == ["a", "b"]
    assert int(last[0][9]) % 2 == 0  # on the same subject
    _, script = bank(tmp_path / "three", "method.top_k=3", extractor=two, task=Themed, test=7)
    most = shown(next(call.prompt for call in script.of("generator") if call.sample == "toy-test-6"))
    assert most[:2] == last
    assert [int(title[9]) % 2 for title in most] == [0] * 6


def test_its_size_is_the_most_that_a_prompt_can_show(tmp_path):
    def longer(call):
        return {"memory_items": [item("t", "w" * 40 * int(call.sample[-1] or 0))]}

    ran, _ = bank(
        tmp_path, "method.top_k=2", extractor=lambda call: longer(call) if call.sample[-1] != "0" else noted(call)
    )
    tokens = [one["tokens"] for one in context_of(ran)["experiences"]]
    last = [line for line in ran.lines("journal") if line["kind"] == "step"][-1]
    assert (last["context_tokens"], last["context_size"]) == (sum(sorted(tokens)[-2:]), 4)


@pytest.mark.parametrize(
    "reply", ["no JSON", {"memory_items": "many"}, {}, BROKEN], ids=["text", "wrong type", "nothing", "refused"]
)
def test_a_reply_that_cannot_be_read_is_a_fault_and_teaches_nothing(reply, tmp_path):
    ran, _ = bank(tmp_path, extractor=lambda _: reply, test=1)
    assert context_of(ran)["experiences"] == []
    (fault,) = of(ran, "fault")
    assert fault["role"] == "extractor"


@pytest.mark.parametrize(
    "bad",
    [5, {"title": "no content"}, item("blank", " "), item("t" * 201), item("long", "c" * 8_001), item("list", ["a"])],
    ids=lambda bad: str(bad)[:40],
)
def test_an_item_that_cannot_be_used_is_refused_by_itself(bad, tmp_path):
    ran, _ = bank(tmp_path, extractor=lambda _: {"memory_items": [item("one"), bad, item("two")]}, test=1)
    assert titles(ran) == ["one", "two"]
    (refused,) = of(ran, "refused")
    assert (refused["role"], refused["item"]) == ("extractor", 1)


def test_items_beyond_the_limit_are_refused_and_a_reply_without_any_leaves_no_experience(tmp_path):
    many = {"memory_items": [item(f"number {n}") for n in range(5)]}
    ran, script = bank(tmp_path / "many", "method.most_items=2", extractor=lambda _: many, test=1)
    assert titles(ran) == ["number 0", "number 1"]
    assert len(of(ran, "refused")) == 3
    assert "At most 2 items" in script.of("extractor")[0].prompt
    ran, _ = bank(tmp_path / "none", extractor=lambda _: {"memory_items": []}, test=1)
    assert context_of(ran)["experiences"] == []


def test_the_authors_items_are_markdown_that_is_shown_as_it_was_written(tmp_path):
    def written(call):
        return f"# Memory Item 1\n## Title of {call.sample}\n\n## Content {{x}}\n"

    ran, script = bank(tmp_path, "method.protocol=authors", extractor=written, test=2)
    assert ["# Memory Item <its number>" in call.prompt for call in script.of("extractor")] == [True, True]
    shown_text = "<memory_items>\n# Memory Item 1\n## Title of toy-test-0\n\n## Content {x}\n</memory_items>"
    assert shown_text in script.of("generator")[1].prompt
    assert [(one["success"], one["items"]) for one in context_of(ran)["experiences"]] == [(True, []), (False, [])]
    settings = ("task=formula", "task.source=sample", "method=reasoning_bank", "method.protocol=authors")
    assert launch(tmp_path, *settings, "method.reference=true").status == 2


def test_the_official_protocol_has_the_authors_items_written_at_their_temperature():
    config = composed("method=reasoning_bank", "protocol=official", "mode=online")[0]
    assert (config.method.protocol, config.sampling.extractor.temperature) == ("authors", 1.0)


@pytest.mark.parametrize("judge", [BROKEN, "no JSON"], ids=["refused", "text"])
def test_neither_a_failed_rollout_nor_an_attempt_without_a_verdict_teaches(judge, tmp_path):
    def generator(call):
        return BROKEN if call.sample.endswith("0") else even_right(call)

    ran, script = bank(tmp_path, "labels=none", generator=generator, judge=lambda _: judge, test=2)
    assert script.of("extractor") == []
    assert {call.sample for call in script.of("self_judge")} == {"toy-test-1"}
    assert ran.metrics["operations"] == {"skipped": 2}


def test_a_batch_learns_in_the_order_of_its_samples_and_from_the_memory_before_it(tmp_path):
    ran, script = bank(tmp_path, "mode.batch_size=4", "labels=correctness", mode="offline", train=4, test=1)
    assert [title[-1] for title in titles(ran)] == ["0", "1", "2", "3"]
    assert all(shown(call.prompt) == [] for call in script.of("generator") if "train" in call.sample)


def test_a_prompt_that_is_too_long_loses_the_least_similar_experience(tmp_path):
    def cramped(call):
        return TOO_LONG if len(shown(call.prompt)) > 1 else even_right(call)

    ran, script = bank(tmp_path, "method.top_k=3", generator=cramped, task=Themed, test=5)
    assert ran.metrics["faults"]["adapt"] == {}
    (kept,) = shown(script.of("generator")[-1].prompt)
    assert int(kept[-1]) % 2 == 0


def test_a_saved_memory_is_where_a_run_starts_and_frozen_shows_the_same(tmp_path):
    settings = ("labels=correctness", "method.top_k=2")
    ran, script = bank(tmp_path, *settings, mode="offline", task=Themed, train=6, test=4)
    saved = ran.folder / "contexts" / "final.json"
    evaluated = {call.sample: call.prompt for call in script.of("generator") if "test" in call.sample}
    frozen = Scripted(generator=even_right)
    overrides = ("task=formula", "task.source=sample", "method=frozen", "mode=evaluate", f"mode.context={saved}")
    assert launch(tmp_path / "frozen", *overrides, backbone=lambda _: frozen, task=lambda _: Themed()).status == 0
    assert {call.sample: call.prompt for call in frozen.of("generator")} == evaluated
    assert all(len(shown(prompt)) == 2 for prompt in evaluated.values())
    again, script = bank(tmp_path / "again", f"method.initial={saved}", task=Themed, test=1)
    assert len(titles(again)) == 7
    assert len(shown(script.of("generator")[0].prompt)) == 1  # top_k is the run's
