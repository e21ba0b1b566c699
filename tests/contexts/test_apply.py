"""Operations on a playbook: a table of rules, then the invariants over any delta."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ace_bench.contexts.playbook.apply import Add, Limits, Merge, Operation, Remove, Tag, Update, Votes, reject
from ace_bench.contexts.playbook.bullets import Bullet, clean, comparable
from ace_bench.contexts.playbook.playbook import Playbook

from .making import SECTIONS, bullet, count, deltas, examples, ids, playbook, playbooks, rejected, run

START = Playbook.start(SECTIONS)
FIRST, SECOND, THIRD = "others-00001", "others-00002", "others-00003"
EMPTY, NOTHING = "the content is empty", "the UPDATE changes nothing"
TWICE, UNKNOWN = f"bullet {FIRST} already says exactly this", "there is no bullet 'x-1'"
TWO = "a MERGE needs at least two different bullets"
MEMBERS = (
    bullet(1, "one", helpful=1, sources=("a",)),
    bullet(2, "two", "common_mistakes", helpful=2, harmful=1, sources=("b", "a")),
    bullet(3, "three", neutral=4),
)


def reasons(book: Playbook, *delta: Operation, limits: Limits | None = None) -> list[str]:
    return [one["reason"] for one in rejected(run(book, *delta, limits=limits))]


@pytest.mark.parametrize(
    ("bullets", "operation", "wanted", "event", "touched"),
    [
        (
            (),
            Add(section="Strategies & Insights", content="  look\r\ntwice ", votes=Votes(helpful=1)),
            [bullet(1, "look\ntwice", SECTIONS[0], helpful=1, created=7, changed=7, sources=("s1",))],
            {"type": "ADD", "bullet": "sai-00001"},
            True,
        ),
        (
            (bullet(1, "one"),),
            Update(id=FIRST, content=" new ", votes=Votes(helpful=2)),
            [bullet(1, "new", helpful=2, changed=7, sources=("s1",))],
            {"type": "UPDATE", "bullet": FIRST},
            True,
        ),
        (
            (bullet(1, "one", sources=("s9",)),),
            Tag(id=FIRST, votes=Votes(harmful=2, neutral=1)),
            [bullet(1, "one", harmful=2, neutral=1, changed=7, sources=("s9",))],
            {"type": "TAG", "bullet": FIRST, "votes": {"harmful": 2, "neutral": 1}},
            False,
        ),
        (
            MEMBERS,
            Merge(ids=(THIRD, "cm-00002", FIRST, "cm-00002")),
            [bullet(1, "one", helpful=3, harmful=1, neutral=4, changed=7, sources=("a", "b", "s1"))],
            {"type": "MERGE", "bullet": FIRST, "merged": [THIRD, "cm-00002"]},
            True,
        ),
        (
            (bullet(1, "one"), bullet(2, "two")),
            Merge(ids=(FIRST, SECOND), content="TWO"),
            [bullet(1, "TWO", changed=7, sources=("s1",))],
            {"type": "MERGE", "bullet": FIRST, "merged": [SECOND]},
            True,
        ),
        ((bullet(1, "one"),), Remove(id=FIRST), [], {"type": "REMOVE", "bullet": FIRST}, False),
    ],
)
def test_each_operation_changes_what_it_says_and_nothing_else(
    bullets: tuple[Bullet, ...], operation: Operation, wanted: list[Bullet], event: dict[str, Any], touched: bool
) -> None:
    done = run(Playbook.build_from(bullets, sections=SECTIONS), operation)
    assert list(done.playbook.bullets) == wanted
    assert done.events == ({"event": "accepted", **event},)
    assert done.touched == ((event["bullet"],) if touched else ())


def test_ids_are_never_reused_and_count_over_all_sections() -> None:
    book = run(START, Add(section="others", content="a"), Remove(id=FIRST)).playbook
    book = run(book, Add(section="others", content="a"), Add(section="common mistakes", content="b")).playbook
    assert ids(book) == [SECOND, "cm-00003"]


@pytest.mark.parametrize(
    ("contents", "delta", "wanted"),
    [
        ((), [Add(section="others", content=" \n\t")], [EMPTY]),
        ((), [Add(section="others", content="\x00\x07")], [EMPTY]),
        (("a",), [Update(id=FIRST, content="")], [EMPTY]),
        (("Check the unit",), [Add(section="others", content="Check  the\nunit ")], [TWICE]),
        (("Check the unit", "b"), [Update(id=SECOND, content="check the unit")], [TWICE]),
        (("a", "b", "two"), [Merge(ids=(SECOND, THIRD), content="A")], [TWICE]),
        ((), [Add(section="others", content="a"), Add(section="common_mistakes", content="A")], [TWICE]),
        (("one", "one"), [Remove(id=SECOND), Add(section="others", content="one")], [TWICE]),
        (("one",), [Update(id=FIRST, content=" one"), Update(id=FIRST)], [NOTHING, NOTHING]),
        (("one",), [Update(id=FIRST, content="ONE")], []),
        (
            ("one", "two"),
            [
                Remove(id=FIRST),
                Update(id=SECOND, content="3"),
                *(Add(section="others", content=text) for text in ("one", "two")),
            ],
            [],
        ),
        (("a",), [Update(id="x-1", content="c"), Remove(id="x-1"), Merge(ids=(FIRST, "x-1"))], [UNKNOWN] * 3),
        (("a",), [Tag(id="x-1", votes=Votes(helpful=1))], [UNKNOWN]),
        (("one",), [Merge(ids=()), Merge(ids=(FIRST,)), Merge(ids=(FIRST, FIRST))], [TWO] * 3),
        (
            (),
            [Add(section="no \x00", content="a")],
            [f"there is no section 'no \\x00'; there are {', '.join(SECTIONS)}"],
        ),
    ],
)
def test_what_cannot_be_applied_is_rejected_with_a_reason(
    contents: tuple[str, ...], delta: list[Operation], wanted: list[str]
) -> None:
    book = playbook(*contents)
    assert reasons(book, *delta) == wanted
    if len(wanted) == len(delta):
        assert run(book, *delta).playbook is book


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
    assert reasons(START, Add(section="others", content="x" * 40), limits=limits) == []
    assert reasons(playbook("a"), Remove(id=FIRST), limits=limits) == ["REMOVE is not enabled"]


@pytest.mark.parametrize(
    ("operation", "echo"),
    [
        ("ADD\x00", {"type": "ADD"}),
        (None, {"type": None}),
        (
            {"n": 1, "f": 0.5, "b": True, "x": None, "deep": {"a": ["\u2028"]}, "k" * 201: "v" * 201},
            {
                "n": 1,
                "f": 0.5,
                "b": True,
                "x": None,
                "deep": "{'a': ['\\u2028']}",
                "k" * 200 + "...": "v" * 200 + "...",
            },
        ),
        (
            Tag(id="a", votes=Votes(harmful=1)),
            {"type": "TAG", "id": "a", "votes": repr({"helpful": 0, "harmful": 1, "neutral": 0})},
        ),
    ],
)
def test_a_rejected_operation_is_shown_flat_and_short(operation: object, echo: dict[str, object]) -> None:
    assert reject(operation, "why") == {"event": "rejected", "operation": echo, "reason": "why"}


def test_unknown_sections_can_go_to_others_with_a_note_or_be_created() -> None:
    done = run(Playbook.start(["a"]), Add(section="no", content="x"), limits=Limits(unknown_section="others"))
    assert (ids(done.playbook), done.playbook.sections) == ([FIRST], ("a", "others"))
    assert done.events[0]["note"] == "there is no section 'no'; put under others"
    created = run(Playbook.start(["a"]), Add(section="No", content="x"), limits=Limits(unknown_section="create"))
    assert (ids(created.playbook), created.playbook.sections) == (["no-00001"], ("a", "no"))


def test_operations_see_what_the_ones_before_left() -> None:
    votes = Votes(helpful=1)
    delta = (
        Add(section="others", content="a"),
        Tag(id=FIRST, votes=votes),
        Remove(id=FIRST),
        Tag(id=FIRST, votes=votes),
    )
    done = run(START, *delta)
    assert [one["event"] for one in done.events] == ["accepted"] * 3 + ["rejected"]
    assert done.touched == ()


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
