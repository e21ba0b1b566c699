"""Memories of the field: what may teach, what fits into a prompt, what is saved, and what a writer's reply may hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts import system_prompt
from ace_bench.contexts.loading import restore
from ace_bench.core.encoding import digest_of
from ace_bench.methods.field.reasoning_bank import Experience, MemoryItem, ReasoningItems
from ace_bench.methods.field.stream_memory import Memory, MemoryEntry
from ace_bench.methods.field.workflows import Workflow, Workflows
from tests.launching import composed, launch
from tests.methods.field.making import (
    BROKEN,
    TOO_LONG,
    Themed,
    even_right,
    even_right_as_text,
    events_of,
    item,
    learn,
    note_workflow,
    prompts_of,
    shown,
    titles,
    workflow,
)
from tests.methods.playing import context_of, estimate_calls
from tests.playbook.making import examples
from tests.runners.scripted import Scripted, right, steps

WRITERS = {"awm": ("inducer", "workflows"), "reasoning_bank": ("extractor", "memory_items")}
"""The role that writes a memory, and the list in its reply."""


@pytest.mark.parametrize("method", WRITERS)
def test_a_reply_that_cannot_be_read_is_a_fault_and_teaches_nothing(method, tmp_path):
    role, name = WRITERS[method]
    replies = ["no JSON", {name: "many"}, {}, BROKEN]
    settings = {"generator": right, role: lambda call: replies[int(call.sample[-1])], "test": 4}
    ran, _ = learn(tmp_path, method, **settings)
    assert (titles(ran), [event["role"] for event in events_of(ran, "fault")]) == ([], [role] * 4)


BAD = {
    "reasoning_bank": [
        item("blank", " "),
        item("t" * 201),
        item("x", "c" * 8_001),
        item("x", []),
        {"title": "no content"},
    ],
    "awm": [
        *(
            {"title": "x", "steps": steps}
            for steps in (["a"], ["a", " \n"], ["a", "b" * 8_001], ["a"] * 31, [["a"], "b"])
        ),
        *(5, {"title": "", "steps": ["a", "b"]}),
    ],
}


@pytest.mark.parametrize("method", WRITERS)
def test_an_item_that_cannot_be_used_is_refused_by_itself(method, tmp_path):
    role, name = WRITERS[method]
    one, two = map(workflow if method == "awm" else item, ("one", "two"))
    settings = {role: lambda _: {name: [one, *BAD[method], two]}, "test": 1}
    ran, _ = learn(tmp_path, method, *(("method.most_items=9",) if method == "reasoning_bank" else ()), **settings)
    assert titles(ran) == ["one", "two"]
    refused = [(event["role"], event["item"]) for event in events_of(ran, "refused")]
    assert refused == [(role, place) for place, _ in enumerate(BAD[method], 1)]


@pytest.mark.parametrize("method", ["mem_prompt", "awm", "reasoning_bank"])
def test_a_failed_rollout_teaches_nothing(method, tmp_path):
    ran, _ = learn(tmp_path, method, "labels=gold", generator=lambda _: BROKEN, test=2)
    assert (ran.metrics["operations"], ran.metrics["context"]["items"]) == ({"skipped": 2}, 0)


@pytest.mark.parametrize("method", WRITERS)
def test_an_attempt_without_a_verdict_teaches_nothing(method, tmp_path):
    verdicts = [BROKEN, "no JSON", {"success": "perhaps"}]
    ran, script = learn(tmp_path, method, "labels=none", self_judge=lambda call: verdicts[int(call.sample[-1])], test=3)
    assert (script.of(WRITERS[method][0]), ran.metrics["operations"]) == ([], {"skipped": 3})


@pytest.mark.parametrize("method", ["mem_prompt", "reasoning_bank", "awm"])
def test_a_prompt_that_is_too_long_loses_the_least_similar_or_the_oldest(method, tmp_path):
    def cramped(call):
        return TOO_LONG if len(shown(call.prompt)) > 2 else even_right(call)

    labels = "labels=none" if method == "awm" else "labels=correctness"
    top = ("method.top_k=3",) if method == "reasoning_bank" else ()
    ran, script = learn(tmp_path, method, labels, *top, generator=cramped, task=Themed, test=8)
    left = shown(prompts_of(script)["toy-test-7"])
    assert left == [5, 6] if method == "awm" else [number % 2 for number in left] == [1, 1]
    assert ran.metrics["faults"]["adapt"] == {}


SAVED = {
    "self_stream_icl": ("method.top_k=2",),
    "reasoning_bank": ("method.top_k=2",),
    "awm": (),
}


@pytest.mark.parametrize("method", SAVED)
def test_a_saved_memory_is_where_a_run_starts_and_frozen_shows_the_same(method, tmp_path):
    settings = ("labels=correctness", *SAVED[method])
    generator = even_right_as_text if method == "self_stream_icl" else even_right
    sizes = {"train": 6, "test": 4}
    ran, script = learn(tmp_path, method, *settings, mode="offline", task=Themed, generator=generator, **sizes)
    saved = ran.folder / "contexts" / "final.json"
    evaluated, frozen = prompts_of(script, "evaluate"), Scripted(generator=generator)
    overrides = ("task=formula", "task.source=sample", "method=frozen", "mode=evaluate", f"mode.context={saved}")
    again = launch(tmp_path / "frozen", *overrides, backbone=lambda _: frozen, task=lambda _: Themed(test=4))
    assert again.metrics["context"]["kind"] == context_of(ran)["kind"]
    assert prompts_of(frozen) == evaluated
    assert all(len(shown(prompt)) == (3 if method == "awm" else 2) for prompt in evaluated.values())
    if method in WRITERS:
        goes_on, script = learn(tmp_path / "on", method, f"method.initial={saved}", task=Themed, test=1)
        assert titles(goes_on)[: len(titles(ran))] == titles(ran)
        assert len(shown(script.of("generator")[0].prompt)) == (3 if method == "awm" else 1)  # top_k is the run's


@pytest.mark.parametrize(("method", "kept"), [("mem_prompt", "entries"), ("dc_rs", "episodes")])
def test_memories_keep_what_is_asked_and_not_the_schema(method, kept, tmp_path):
    ran = launch(tmp_path, "task=bird_sql", f"method={method}", "mode=online", "labels=correctness", "limit={test: 4}")
    entries = context_of(ran)[kept]
    assert len(entries) >= 3
    assert not any("CREATE TABLE" in entry["question"] for entry in entries)


ESTIMATES = {  # calls for four samples: at least, and at most with replies like the stand-in's
    "awm": {"online none": (8, 12), "offline gold": (24, 44)},
    "awm_offline": {"offline gold": (5, 5)},
    "reasoning_bank": {"online none": (8, 12), "online gold": (8, 8)},
    "reflexion": {"online none": (8, 32), "online gold": (4, 20)},
    "best_of_k": {"online none": (28, 28), "online gold": (4, 12)},
    "mem_prompt": {"online gold": (4, 4)},
}


@pytest.mark.parametrize("method", ESTIMATES)
def test_an_estimate_counts_the_calls_of_all_roles(method):
    for words, calls in ESTIMATES[method].items():
        mode, labels = words.split()
        assert estimate_calls(f"method={method}", f"mode={mode}", f"labels={labels}") == calls, words


def entry(number):
    return MemoryEntry(question=f"Frage {number} é?", answer=f"{number}\n", correct=number % 3 == 0, tokens=number)


def experience(number):
    memory_item = MemoryItem(title=f"title {number}", content=f"„content“ {number} " * 20)
    return Experience(question=f"question {number}", success=number % 2 == 0, items=(memory_item,), tokens=number)


def routine(number):
    return Workflow(title=f"title {number}", steps=(f"open {number}", f"close {number}"), tokens=number)


GROWING = {
    "memory": (Memory(), lambda value, number: value.with_entry(entry(number))),
    "reasoning_items": (ReasoningItems(), lambda value, number: value.with_experience(experience(number))),
    "workflows": (Workflows(), lambda value, number: value.with_new([routine(number)])),
}
RECORDED = {
    "memory": "34c6d8ee01156a2513da74031ec6729eb92012b79f474875e7bc81261c017bb2",
    "reasoning_items": "ef5d83b7c2927dfff9007b18043dc7d9d4beb46ec066ba333d5ee703217eb717",
    "workflows": "66b2739a553a9158a2ebe0df8ec3853af8f7458720b45ee6d85741da8388a96a",
}
"""Digests that run folders hold."""


def grown(kind, numbers):
    value, add = GROWING[kind]
    for number in numbers:
        value = add(value, number)
    return value


@pytest.mark.parametrize("kind", GROWING)
@examples(30)
@given(numbers=st.lists(st.integers(0, 6), max_size=8), more=st.lists(st.integers(0, 6), max_size=4))
def test_a_version_is_the_same_however_it_came_about(kind, numbers, more):
    before = grown(kind, numbers)
    after = before
    for number in more:
        after = GROWING[kind][1](after, number)
    again = before.patched(json.loads(json.dumps(after.patch(before))))
    assert again == after == restore(json.loads(json.dumps(after.dump())))
    assert again.digest == after.digest == digest_of(after.dump())
    assert before.digest == digest_of(before.dump())
    assert after.patch(after) == {}
    assert grown(kind, [1, 2, 3, 2]).digest == RECORDED[kind]


def test_other_programs_get_a_memory_as_text():
    routines = Workflows(items=(Workflow(title="Add", steps=("Write {a} + {b}.", "Sum up.")),))
    assert "<workflows>\n## Add\n1. Write {a} + {b}.\n2. Sum up.\n</workflows>" in system_prompt(routines)
    items = (MemoryItem(title="Add", content="twice"),)
    known = ReasoningItems(experiences=(Experience(question="q", success=True, items=items),))
    assert "<memory_items>\n## Add\ntwice\n</memory_items>" in system_prompt(known)
    assert system_prompt(ReasoningItems()) == system_prompt(Workflows()) == ""


def test_no_reply_fills_the_memory_and_no_routine_is_kept_twice(tmp_path):
    many = [workflow(f"number {n}") for n in range(40)]
    ran, _ = learn(tmp_path, "awm", inducer=lambda _: {"workflows": many}, generator=right, test=2)
    assert titles(ran) == [f"number {n}" for n in range(30)]
    assert len(events_of(ran, "refused")) == 20
    assert [event["known"] for event in events_of(ran, "induced")] == [0, 30]


def test_the_successes_of_a_batch_are_induced_together(tmp_path):
    ran, script = learn(tmp_path, "awm", "mode.batch_size=4", mode="offline", train=4, test=1)
    (call,) = script.of("inducer")
    assert [f"Question: ask toy-train-{n}?" in call.prompt for n in range(4)] == [True, False, True, False]
    assert steps(ran)[0]["events"][-1]["from"] == 2


def test_offline_workflows_come_from_reference_answers_before_any_attempt(tmp_path):
    inducer = lambda call: {"workflows": [workflow(call.session)]}  # noqa: E731
    ran, script = learn(tmp_path, "awm_offline", "method.examples=3", mode="offline", inducer=inducer)
    first, second = (call.prompt for call in script.of("inducer"))
    assert [f"gold of toy-train-{n}" in first for n in range(4)] == [True, True, True, False]
    assert "gold of toy-train-3" in second
    assert "toy-test" not in first + second
    assert ran.metrics["rollouts"]["adapt"] == 0
    assert len(titles(ran)) == 2
    _, script = learn(tmp_path / "whole", "awm_offline", "method.examples=null", mode="offline")
    assert len(script.of("inducer")) == 1


def test_a_prompt_that_is_too_long_is_sent_with_fewer_examples(tmp_path):
    cramped = lambda call: TOO_LONG if "train-1" in call.prompt else note_workflow(call)  # noqa: E731
    ran, _ = learn(tmp_path, "awm_offline", mode="offline", inducer=cramped)
    assert events_of(ran, "dropped_from_prompt")[0]["items"] == 2
    assert len(titles(ran)) == 1


def test_items_beyond_the_limit_are_refused_and_a_reply_without_any_leaves_no_experience(tmp_path):
    many = {"memory_items": [item(f"number {n}") for n in range(5)]}
    ran, script = learn(tmp_path / "many", "reasoning_bank", "method.most_items=2", extractor=lambda _: many, test=1)
    assert titles(ran) == ["number 0", "number 1"]
    assert len(events_of(ran, "refused")) == 3
    assert "At most 2 items" in script.of("extractor")[0].prompt
    ran, _ = learn(tmp_path / "none", "reasoning_bank", extractor=lambda _: {"memory_items": []}, test=1)
    assert context_of(ran)["experiences"] == []


def test_runs_as_the_authors_made_them_sample_the_extractor():
    config = composed("method=reasoning_bank", "protocol=official", "mode=online")[0]
    assert (config.method.protocol, config.sampling.extractor.temperature) == ("authors", 1.0)
