"""Memories that only grow: a version costs what is new in it, and is saved as it always was."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.encoding import digest_of
from ace_field.reasoning_items import Experience, MemoryItem, ReasoningItems
from ace_field.stream_memory import Memory, MemoryEntry
from ace_field.workflows import Workflow, Workflows


def entry(number):
    return MemoryEntry(question=f"Frage {number} é?", answer=f"{number}\n", correct=number % 3 == 0, tokens=number)


def experience(number):
    item = MemoryItem(title=f"title {number}", content=f"„content“ {number} " * 20)
    return Experience(question=f"question {number}", success=number % 2 == 0, items=(item,), tokens=number)


def workflow(number):
    return Workflow(title=f"title {number}", steps=(f"open {number}", f"close {number}"), tokens=number)


GROWING = {
    "memory": (Memory(), lambda value, number: value.with_entry(entry(number))),
    "reasoning_items": (ReasoningItems(), lambda value, number: value.with_experience(experience(number))),
    "workflows": (Workflows(), lambda value, number: value.with_new([workflow(number)])),
}
RECORDED = {
    "memory": "996378bd8c3839803b35e34b93409c3d35fed7f399fcbfdef6e6216c2ffb450a",
    "reasoning_items": "ef5d83b7c2927dfff9007b18043dc7d9d4beb46ec066ba333d5ee703217eb717",
    "workflows": "66b2739a553a9158a2ebe0df8ec3853af8f7458720b45ee6d85741da8388a96a",
}
"""Digests that versions wrote which hashed the whole memory at each step."""


def grown(kind, numbers):
    value, add = GROWING[kind]
    for number in numbers:
        value = add(value, number)
    return value


@pytest.mark.parametrize("kind", GROWING)
def test_digests_are_those_that_run_folders_hold(kind):
    assert grown(kind, [1, 2, 3, 2]).digest == RECORDED[kind]


@pytest.mark.parametrize("kind", GROWING)
@given(numbers=st.lists(st.integers(0, 6), max_size=8), more=st.lists(st.integers(0, 6), max_size=4))
def test_a_version_is_the_same_however_it_came_about(kind, numbers, more):
    before = grown(kind, numbers)
    after = before
    for number in more:
        after = GROWING[kind][1](after, number)
    again = before.patched(json.loads(json.dumps(after.patch(before))))
    assert again == after == type(after).load(json.loads(json.dumps(after.dump())))
    assert again.digest == after.digest == digest_of(after.dump())
    assert before.digest == digest_of(before.dump())
    assert after.patch(after) == {}


@pytest.mark.parametrize("kind", GROWING)
def test_a_patch_of_an_addition_holds_the_addition(kind):
    before = grown(kind, range(50))
    ((name, edits),) = GROWING[kind][1](before, 50).patch(before).items()
    assert (name, [(start, end, len(new)) for start, end, new in edits]) == (before.grows, [(50, 50, 1)])


@pytest.mark.parametrize("kind", GROWING)
def test_a_step_on_a_large_memory_takes_less_than_hashing_it_once(kind):
    value, add = grown(kind, range(2000)), GROWING[kind][1]

    def step():
        after = add(value, 2000)
        assert value.patched(after.patch(value)).digest == after.digest

    assert least_seconds(step) < least_seconds(lambda: digest_of(value.dump()))


def least_seconds(work):
    taken = []
    for _ in range(10):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)
