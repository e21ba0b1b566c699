"""Operations on a playbook: a table of rules, then the invariants over any delta."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ace_bench.playbook.apply import Add, Limits, Merge, Remove, Tag, Update, Votes
from ace_bench.playbook.bullets import clean, comparable
from ace_bench.playbook.playbook import Playbook
from tests.outcomes import outcomes

from .making import SECTIONS, bullet, count, deltas, examples, ids, playbook, playbooks, rejected, run

START = Playbook.start(SECTIONS)
FIRST = "others-00001"
KINDS = {kind.__name__.upper(): kind for kind in (Add, Update, Merge, Remove, Tag)}


def apply_case(case: tuple[list[dict[str, Any]], list[tuple[str, dict[str, Any]]]]) -> str:
    """Apply operations to a playbook; nothing but what they say is another bullet then."""
    bullets, delta = case
    before = Playbook.build_from([bullet(**one) for one in bullets], sections=SECTIONS)
    operations = [
        KINDS[kind](**{key: Votes(**value) if key == "votes" else value for key, value in fields.items()})
        for kind, fields in delta
    ]
    done = run(before, *operations)
    if all(event["event"] == "rejected" for event in done.events):
        assert done.playbook is before
        return "; ".join(event["reason"] for event in done.events)
    changed = [one.record() for one in done.playbook.bullets if before.index.get(one.id) is not one]
    return f"{changed}, {ids(done.playbook)}, {done.events}, {done.touched}"


# Bullets of a playbook, then operations: what becomes of the bullets, the events, and which were touched.
OPERATIONS = [
    ([], [("ADD", {"section": "Strategies & Insights", "content": "  look\r\ntwice ", "votes": {"helpful": 1}})]),
    (
        [{"number": 1, "content": "one"}],
        [("UPDATE", {"id": "others-00001", "content": " new ", "votes": {"helpful": 2}})],
    ),
    (
        [{"number": 1, "content": "one", "sources": ("s9",)}],
        [("TAG", {"id": "others-00001", "votes": {"harmful": 2, "neutral": 1}})],
    ),
    (
        [
            {"number": 1, "content": "one", "helpful": 1, "sources": ("a",)},
            {
                "number": 2,
                "content": "two",
                "section": "common_mistakes",
                "helpful": 2,
                "harmful": 1,
                "sources": ("b", "a"),
            },
            {"number": 3, "content": "three", "neutral": 4},
        ],
        [("MERGE", {"ids": ("others-00003", "cm-00002", "others-00001", "cm-00002")})],
    ),
    (
        [{"number": 1, "content": "one"}, {"number": 2, "content": "two"}],
        [("MERGE", {"ids": ("others-00001", "others-00002"), "content": "TWO"})],
    ),
    ([{"number": 1, "content": "one"}], [("REMOVE", {"id": "others-00001"})]),
    # Ids are never reused and count over all sections.
    (
        [],
        [
            ("ADD", {"section": "others", "content": "a"}),
            ("REMOVE", {"id": "others-00001"}),
            ("ADD", {"section": "others", "content": "a"}),
            ("ADD", {"section": "common mistakes", "content": "b"}),
            ("TAG", {"id": "others-00001", "votes": {"helpful": 1}}),
        ],
    ),
    # What cannot be applied is rejected with a reason.
    ([], [("ADD", {"section": "others", "content": " \n\t"})]),
    ([], [("ADD", {"section": "others", "content": "\x00\x07"})]),
    ([{"number": 1, "content": "a"}], [("UPDATE", {"id": "others-00001", "content": ""})]),
    ([{"number": 1, "content": "Check the unit"}], [("ADD", {"section": "others", "content": "Check  the\nunit "})]),
    (
        [{"number": 1, "content": "Check the unit"}, {"number": 2, "content": "b"}],
        [("UPDATE", {"id": "others-00002", "content": "check the unit"})],
    ),
    (
        [{"number": 1, "content": "a"}, {"number": 2, "content": "b"}, {"number": 3, "content": "two"}],
        [("MERGE", {"ids": ("others-00002", "others-00003"), "content": "A"})],
    ),
    ([], [("ADD", {"section": "others", "content": "a"}), ("ADD", {"section": "common_mistakes", "content": "A"})]),
    (
        [{"number": 1, "content": "one"}, {"number": 2, "content": "one"}],
        [("REMOVE", {"id": "others-00002"}), ("ADD", {"section": "others", "content": "one"})],
    ),
    (
        [{"number": 1, "content": "one"}],
        [("UPDATE", {"id": "others-00001", "content": " one"}), ("UPDATE", {"id": "others-00001"})],
    ),
    ([{"number": 1, "content": "one"}], [("UPDATE", {"id": "others-00001", "content": "ONE"})]),
    (
        [{"number": 1, "content": "one"}, {"number": 2, "content": "two"}],
        [
            ("REMOVE", {"id": "others-00001"}),
            ("UPDATE", {"id": "others-00002", "content": "3"}),
            ("ADD", {"section": "others", "content": "one"}),
            ("ADD", {"section": "others", "content": "two"}),
        ],
    ),
    (
        [{"number": 1, "content": "a"}],
        [
            ("UPDATE", {"id": "x-1", "content": "c"}),
            ("REMOVE", {"id": "x-1"}),
            ("MERGE", {"ids": ("others-00001", "x-1")}),
        ],
    ),
    ([{"number": 1, "content": "a"}], [("TAG", {"id": "x-1", "votes": {"helpful": 1}})]),
    (
        [{"number": 1, "content": "one"}],
        [
            ("MERGE", {"ids": ()}),
            ("MERGE", {"ids": ("others-00001",)}),
            ("MERGE", {"ids": ("others-00001", "others-00001")}),
        ],
    ),
    ([], [("ADD", {"section": "no \x00", "content": "a"})]),
]


def test_operations_do_as_recorded(snapshot) -> None:
    assert outcomes(apply_case, OPERATIONS) == snapshot


@pytest.mark.parametrize(
    ("length", "echo", "reason"),
    [
        (80, "x" * 80, "the bullet takes 27 tokens, more than 20"),
        (200, "x" * 200, "the bullet takes 57 tokens, more than 20"),
        (1_000_000, "x" * 200 + "...", "the content is longer than 20 tokens"),
    ],
)
def test_limits_reject_large_contents_and_kinds_that_are_not_enabled(length: int, echo: str, reason: str) -> None:
    limits = Limits(bullet_tokens=20, kinds=["ADD"])
    (event,) = run(START, Add(section="others", content="x" * length), limits=limits).events
    assert (event["event"], event["reason"], event["operation"]["content"]) == ("rejected", reason, echo)
    assert not rejected(run(START, Add(section="others", content="x" * 40), limits=limits))
    (refused,) = rejected(run(playbook("a"), Remove(id=FIRST), limits=limits))
    assert refused["reason"] == "REMOVE is not enabled"


def test_unknown_sections_can_go_to_others_with_a_note_or_be_created() -> None:
    done = run(Playbook.start(["a"]), Add(section="no", content="x"), limits=Limits(unknown_section="others"))
    assert (ids(done.playbook), done.playbook.sections) == ([FIRST], ("a", "others"))
    assert done.events[0]["note"] == "there is no section 'no'; put under others"
    created = run(Playbook.start(["a"]), Add(section="No", content="x"), limits=Limits(unknown_section="create"))
    assert (ids(created.playbook), created.playbook.sections) == (["no-00001"], ("a", "no"))


@given(playbooks(), deltas, deltas)
@examples(80)
def test_apply_is_pure_deterministic_and_keeps_its_promises(book: Playbook, delta: list, later: list) -> None:
    before = book.dump()
    done = run(book, *delta)
    assert run(book, *delta) == done
    assert book.dump() == before
    assert len(done.events) == len(delta)
    json.dumps(done.events)
    check(done.playbook)
    said, says = ([comparable(one.content) for one in some.bullets] for some in (book, done.playbook))
    assert len(set(says)) == len(says) or len(set(said)) < len(said)
    fresh = {one.number for one in done.playbook.bullets} - {one.number for one in book.bullets}
    assert all(book.next_number <= number < done.playbook.next_number for number in fresh)
    for one in done.playbook.bullets:
        assert one is book.index.get(one.id) or one.changed == 7
    assert run(done.playbook, *later).playbook == run(book, *delta, *later).playbook


def check(book: Playbook) -> None:
    numbers = [one.number for one in book.bullets]
    assert len(set(ids(book))) == book.size
    assert numbers == sorted(numbers)
    assert all(number < book.next_number for number in numbers)
    for one in book.bullets:
        assert one.section in book.sections
        assert one.content == clean(one.content) != ""
        assert one.tokens == count(one.line + "\n")
        assert min(one.helpful, one.harmful, one.neutral) >= 0
