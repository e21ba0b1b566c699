"""Demonstrations, instructions and cheatsheets as values: rendering, dump, patch, giving way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.embedded.prompt_parser import read_demonstrations
from ace_bench.contexts.base import ContextValue, NoContext, apply_patch
from ace_bench.contexts.cheatsheet import Cheatsheet, PastRollout
from ace_bench.contexts.instruction import Demonstration, Demonstrations, Instruction
from ace_bench.core.context import Context
from ace_bench.core.encoding import digest_of
from tests.outcomes import outcomes_by_name
from tests.playbook.making import SAMPLE, contents, count, examples

demonstrations = st.builds(
    lambda question, answer, reasoning: Demonstration.measure(
        question=question, answer=answer, reasoning=reasoning, count=count
    ),
    contents,
    contents,
    st.just("") | contents,
)
rows = st.lists(demonstrations, max_size=4).map(tuple)
values: st.SearchStrategy[Context] = st.builds(Demonstrations, items=rows)
instructions: st.SearchStrategy[Context] = st.builds(
    lambda text, row: Instruction.measure(text, count=count, demonstrations=row), st.text(max_size=20), rows
)
past = st.builds(PastRollout, question=contents, output=contents, feedback=st.text(max_size=5))
texts = st.text(max_size=30) | st.lists(contents, max_size=4).map("\n".join)
sheets: st.SearchStrategy[Context] = st.builds(
    lambda text, episodes: sheet(text, *episodes), texts, st.lists(past, max_size=3)
)
nothing: st.SearchStrategy[Context] = st.just(NoContext())
same_kind = st.one_of(*(st.tuples(kind, kind) for kind in (values, instructions, sheets, nothing)))


def sheet(text: str, *episodes: PastRollout) -> Cheatsheet:
    return Cheatsheet(episodes=episodes).rewritten(text, count=count)


def demonstration(number: int, **fields: str) -> Demonstration:
    return Demonstration.measure(question=f"question {number}?", answer=f"answer {number}", count=count, **fields)


def row(size: int) -> tuple[Demonstration, ...]:
    return tuple(demonstration(number) for number in range(size))


def test_they_are_shown_in_order_and_read_back_by_the_reader() -> None:
    items = (demonstration(1, reasoning="because"), demonstration(2))
    shown = Demonstrations(items=items).render(SAMPLE)
    assert shown == {
        "demonstrations": "Question: question 1?\nReasoning: because\nAnswer: answer 1\n\n"
        "Question: question 2?\nAnswer: answer 2",
        "examples": items,
    }
    assert read_demonstrations(shown["demonstrations"]) == (("question 1?", "answer 1"), ("question 2?", "answer 2"))


def test_an_instruction_is_shown_with_its_demonstrations() -> None:
    value = Instruction.measure("Do it.", count=count, demonstrations=row(1))
    assert list(value.render(SAMPLE).values()) == ["Do it.", "Question: question 0?\nAnswer: answer 0"]
    assert (value.size, Instruction(text="").size, Demonstrations().size) == (2, 0, 0)
    assert Instruction(text="").render(SAMPLE)["demonstrations"] == "(none)"


@given(st.lists(demonstrations, min_size=1, max_size=4).map(tuple))
@examples(30)
def test_tokens_are_those_of_the_text(items: tuple[Demonstration, ...]) -> None:
    value = Demonstrations(items=items)
    assert count(value.render(SAMPLE)["demonstrations"]) <= value.tokens <= count(value.items[0].text) * 99
    assert Instruction.measure("four", count=count, demonstrations=items).tokens == value.tokens + 1


@given(same_kind)
@examples(60)
def test_a_patch_leads_from_any_value_to_any_other_of_its_kind(pair: tuple[Context, Context]) -> None:
    before, after = pair
    again = before.patched(json.loads(json.dumps(after.patch(before))))
    assert again == after
    assert again.digest == after.digest
    assert type(after).load(json.loads(json.dumps(after.dump()))) == after
    assert (before.digest == after.digest) == (before == after)


def test_a_patch_is_as_small_as_the_change() -> None:
    before, after = Demonstrations(items=row(200)), Demonstrations(items=row(201))
    ((start, end, added),) = after.patch(before)["items"]
    assert (start, end, [one["question"] for one in added]) == (200, 200, ["question 200?"])
    again = before.patched(after.patch(before))
    assert all(one is other for one, other in zip(again.items, before.items, strict=False)), "they are not made anew"
    assert before.patch(after) == {"items": [(200, 201, [])]}
    moved = Demonstrations(items=row(201)[1:]).patch(before)["items"]
    assert [(start, end, len(added)) for start, end, added in moved] == [(0, 1, 0), (200, 200, 1)]
    text = Instruction(text="long" * 1000, demonstrations=row(2))
    assert text.patch(Instruction(text="long" * 1000)).keys() == {"demonstrations"}
    lines = [f"- lesson {number}" for number in range(300)]
    longer = sheet("\n".join([*lines[:150], "- another", *lines[151:], "- last"]))
    assert longer.patch(sheet("\n".join(lines)))["text"] == [(150, 151, ["- another"]), (300, 300, ["- last"])]


def test_the_last_demonstrations_give_way_and_the_text_never_does() -> None:
    value: Instruction | None = Instruction(text="Do it.", demonstrations=row(9))
    sizes = []
    while value is not None:
        assert value.text == "Do it."
        assert value.demonstrations == row(9)[: len(value.demonstrations)]
        sizes.append(value.size)
        value = value.shrink()
    assert sizes == [10, 7, 5, 4, 3, 2, 1]
    assert Demonstrations().shrink() is None


def test_a_cheatsheet_is_shown_as_a_whole_and_measured_without_its_attempts() -> None:
    value = sheet("- one\n\n- two", PastRollout(question="q" * 999, output="o"))
    assert value.render(SAMPLE) == {"cheatsheet": "- one\n\n- two"}
    assert (value.size, value.tokens) == (2, count("- one\n\n- two"))
    assert Cheatsheet().render(SAMPLE) == {"cheatsheet": "(empty)"}
    assert Cheatsheet().size == Cheatsheet().tokens == 0


EXAMPLES: dict[str, ContextValue] = {one.kind: one for one in (Demonstrations(), Instruction(text="x"), sheet("a\nb"))}


# Kind, field and what a patch says of it: patches that do not fit.
VALUES = {
    "patch": [
        ("demonstrations", {"items": "all"}),
        ("demonstrations", {"items": [[0]]}),
        ("demonstrations", {"items": [[-1, 0, []]]}),
        ("demonstrations", {"items": [[0, 9, []]]}),
        ("demonstrations", {"items": [[1, 0, []]]}),
        ("demonstrations", {"items": [[0, 1, [1]]]}),
        ("demonstrations", {"items": [[0, 2, []], [1, 2, []]]}),
        ("demonstrations", {"items": [[0, 0, [{"question": 1, "answer": "a"}]]]}),
        ("demonstrations", {"items": [[0, 0, [{"question": "q", "answer": "a", "gold": "x"}]]]}),
        ("demonstrations", {"items": None}),
        ("demonstrations", {"unknown": []}),
        ("instruction", {"demonstrations": "all"}),
        ("instruction", {"demonstrations": [[0]]}),
        ("instruction", {"demonstrations": [[-1, 0, []]]}),
        ("instruction", {"demonstrations": [[0, 9, []]]}),
        ("instruction", {"demonstrations": [[1, 0, []]]}),
        ("instruction", {"demonstrations": [[0, 1, [1]]]}),
        ("instruction", {"demonstrations": [[0, 2, []], [1, 2, []]]}),
        ("instruction", {"demonstrations": [[0, 0, [{"question": 1, "answer": "a"}]]]}),
        ("instruction", {"demonstrations": [[0, 0, [{"question": "q", "answer": "a", "gold": "x"}]]]}),
        ("instruction", {"demonstrations": None}),
        ("instruction", {"unknown": []}),
        ("cheatsheet", {"text": "all"}),
        ("cheatsheet", {"text": [[0]]}),
        ("cheatsheet", {"text": [[-1, 0, []]]}),
        ("cheatsheet", {"text": [[0, 9, []]]}),
        ("cheatsheet", {"text": [[1, 0, []]]}),
        ("cheatsheet", {"text": [[0, 1, [1]]]}),
        ("cheatsheet", {"text": [[0, 2, []], [1, 2, []]]}),
        ("cheatsheet", {"text": [[0, 0, [{"question": 1, "answer": "a"}]]]}),
        ("cheatsheet", {"text": [[0, 0, [{"question": "q", "answer": "a", "gold": "x"}]]]}),
        ("cheatsheet", {"text": None}),
        ("cheatsheet", {"unknown": []}),
    ],
    # Kind and fields of saved values that are refused.
    "saved": [
        ("demonstrations", {"kind": "x"}),
        ("demonstrations", {"more": 1}),
        ("demonstrations", {"items": 3, "text": 4}),
        ("demonstrations", {"items": [{"question": "q"}], "text": None}),
        ("instruction", {"kind": "x"}),
        ("instruction", {"more": 1}),
        ("instruction", {"items": 3, "text": 4}),
        ("instruction", {"items": [{"question": "q"}], "text": None}),
        ("cheatsheet", {"kind": "x"}),
        ("cheatsheet", {"more": 1}),
        ("cheatsheet", {"items": 3, "text": 4}),
        ("cheatsheet", {"items": [{"question": "q"}], "text": None}),
    ],
}


def test_patches_and_saved_values_are_refused_as_recorded(snapshot) -> None:
    cases: dict[str, Callable[[Any], object]] = {
        "patch": lambda case: EXAMPLES[case[0]].patched(case[1]),
        "saved": lambda case: type(EXAMPLES[case[0]]).load({"kind": case[0], **case[1]}),
    }
    assert outcomes_by_name(cases, VALUES) == snapshot
    for value in EXAMPLES.values():
        with pytest.raises(TypeError):
            value.patch(NoContext())


@dataclass(frozen=True, kw_only=True)
class Log(ContextValue):
    """A kind that items are appended to."""

    items: tuple[str, ...] = ()
    more: tuple[str, ...] | None = None
    note: str | None = ""
    seen: tuple[str, ...] = ()

    kind = "log"
    grows = "items"
    optional = "seen"


def test_a_kind_that_grows_has_the_digest_of_its_saved_form() -> None:
    log = Log(note="é")
    for number in range(4):
        assert log.digest == digest_of(log.dump())
        log = log.changed(items=(*log.items, f"item {number}"))
    assert log.changed(items=log.items[1:]).digest == digest_of({**log.dump(), "items": log.items[1:]})
    assert log.dump().keys() == {"kind", "items", "more", "note"}
    assert log.changed(seen=("s",)).dump()["seen"] == ("s",)


def test_a_field_may_come_to_have_no_value_and_have_one_again():
    log = Log(note="é")
    for fields in ({"note": None}, {"more": ("a",)}, {"more": ("a",), "note": None}):
        other = log.changed(**fields)
        for before, after in ((log, other), (other, log)):
            patch = json.loads(json.dumps(after.patch(before)))
            assert before.patched(patch) == after
            assert Log.load(apply_patch(before.dump(), patch)) == after
