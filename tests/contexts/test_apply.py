"""Operations on a playbook: one rule a test, then the invariants over any delta."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ace_bench.contexts.playbook.apply import Add, Limits, Merge, Operation, Remove, Tag, Update, Votes
from ace_bench.contexts.playbook.bullets import clean, comparable
from ace_bench.contexts.playbook.playbook import Playbook

from .making import SECTIONS, bullet, count, deltas, examples, ids, playbook, playbooks, rejected, run

START = Playbook.start(SECTIONS)
EMPTY, TWICE, NOTHING = (
    "the content is empty",
    "bullet others-00001 already says exactly this",
    "the UPDATE changes nothing",
)
UNKNOWN, TWO = "there is no bullet 'x-1'", "a MERGE needs at least two different bullets"
FIRST, SECOND = "others-00001", "others-00002"


def reasons(book: Playbook, *delta: Operation, limits: Limits | None = None) -> list[str]:
    return [one["reason"] for one in rejected(run(book, *delta, limits=limits))]


def test_add_assigns_the_next_id_and_notes_step_and_source() -> None:
    done = run(START, Add(section="Strategies & Insights", content="  look\r\ntwice ", votes=Votes(helpful=1)))
    (made,) = done.playbook.bullets
    assert made == bullet(
        1,
        "look\ntwice",
        "strategies_and_insights",
        helpful=1,
        created=7,
        changed=7,
        sources=("s1",),
    )
    assert done.events == ({"event": "accepted", "type": "ADD", "bullet": "sai-00001"},)


def test_ids_are_never_reused_and_count_over_all_sections() -> None:
    book = run(START, Add(section="others", content="a"), Remove(id="others-00001")).playbook
    book = run(book, Add(section="others", content="a"), Add(section="common mistakes", content="b")).playbook
    assert ids(book) == ["others-00002", "cm-00003"]


@pytest.mark.parametrize("length", [100, 1_000_000])
def test_oversized_contents_are_rejected(length: int) -> None:
    limits = Limits(bullet_tokens=20)
    (reason,) = reasons(START, Add(section="others", content="x" * length), limits=limits)
    assert "20" in reason
    assert reasons(START, Add(section="others", content="x" * 40), limits=limits) == []


@pytest.mark.parametrize(
    ("contents", "delta", "wanted"),
    [
        ((), [Add(section="others", content=" \n\t")], [EMPTY]),
        ((), [Add(section="others", content="\x00\x07")], [EMPTY]),
        (("a",), [Update(id=FIRST, content="")], [EMPTY]),
        (("Check the unit",), [Add(section="others", content="Check  the\nunit ")], [TWICE]),
        (("Check the unit", "b"), [Update(id=SECOND, content="check the unit")], [TWICE]),
        (("a", "b", "two"), [Merge(ids=(SECOND, "others-00003"), content="A")], [TWICE]),
        ((), [Add(section="others", content="a"), Add(section="common_mistakes", content="A")], [TWICE]),
        (("one", "one"), [Remove(id=SECOND), Add(section="others", content="one")], [TWICE]),
        (("one",), [Update(id=FIRST, content=" one"), Update(id=FIRST)], [NOTHING, NOTHING]),
        (("one",), [Update(id=FIRST, content="ONE")], []),
        (("a",), [Update(id="x-1", content="c"), Remove(id="x-1"), Merge(ids=(FIRST, "x-1"))], [UNKNOWN] * 3),
        (("a",), [Tag(id="x-1", votes=Votes(helpful=1))], [UNKNOWN]),
        (("one",), [Merge(ids=()), Merge(ids=(FIRST,)), Merge(ids=(FIRST, FIRST))], [TWO] * 3),
    ],
)
def test_what_cannot_be_applied_is_rejected_with_a_reason(
    contents: tuple[str, ...], delta: list[Operation], wanted: list[str]
) -> None:
    book = playbook(*contents)
    assert reasons(book, *delta) == wanted
    if len(wanted) == len(delta):
        assert run(book, *delta).playbook is book


def test_what_a_delta_removed_or_reworded_may_be_said_again() -> None:
    book = playbook("one", "two")
    delta = (
        Remove(id="others-00001"),
        Update(id="others-00002", content="three"),
        Add(section="others", content="one"),
        Add(section="others", content="two"),
    )
    assert reasons(book, *delta) == []


def test_unknown_sections_are_rejected_and_named() -> None:
    (reason,) = reasons(START, Add(section="nowhere", content="a"))
    assert "'nowhere'" in reason
    assert "common_mistakes" in reason


def test_unknown_sections_can_go_to_others_with_a_note() -> None:
    limits = Limits(unknown_section="others")
    done = run(Playbook.start(["a"]), Add(section="nowhere", content="x"), limits=limits)
    assert ids(done.playbook) == ["others-00001"]
    assert done.playbook.sections == ("a", "others")
    assert "nowhere" in str(done.events[0]["note"])


def test_update_replaces_content_and_adds_votes() -> None:
    done = run(playbook("one"), Update(id="others-00001", content=" new ", votes=Votes(helpful=2)))
    (changed,) = done.playbook.bullets
    assert changed == bullet(1, "new", helpful=2, created=0, changed=7, sources=("s1",))
    assert done.touched == ("others-00001",)


def test_votes_leave_content_tokens_and_sources_alone() -> None:
    book = playbook("one")
    done = run(book, Tag(id="others-00001", votes=Votes(harmful=2, neutral=1)), source="s5")
    (tagged,) = done.playbook.bullets
    assert (tagged.harmful, tagged.neutral, tagged.changed, tagged.sources) == (2, 1, 7, ())
    assert tagged.tokens == book.bullets[0].tokens
    assert done.touched == ()
    assert done.events[0]["votes"] == {"harmful": 2, "neutral": 1}


def test_merge_keeps_the_oldest_and_adds_counters_and_sources() -> None:
    book = Playbook.of(
        [
            bullet(1, "one", helpful=1, sources=("a",)),
            bullet(2, "two", "common_mistakes", helpful=2, harmful=1, sources=("b", "a")),
            bullet(3, "three", neutral=4),
        ],
        sections=SECTIONS,
    )
    done = run(book, Merge(ids=("others-00003", "cm-00002", "others-00001", "cm-00002")), source="c")
    assert done.playbook.bullets == (
        bullet(1, "one", helpful=3, harmful=1, neutral=4, changed=7, sources=("a", "b", "c")),
    )
    assert done.events == (
        {
            "event": "accepted",
            "type": "MERGE",
            "bullet": "others-00001",
            "merged": ["others-00003", "cm-00002"],
        },
    )


def test_merge_may_bring_its_own_content() -> None:
    book = playbook("one", "two", "three")
    done = run(book, Merge(ids=("others-00001", "others-00003"), content="THREE"))
    assert [one.content for one in done.playbook.bullets] == ["THREE", "two"]
    assert reasons(book, Merge(ids=("others-00001", "others-00003"), content="two")) == [
        "bullet others-00002 already says exactly this"
    ]


def test_kinds_can_be_disabled() -> None:
    limits = Limits(kinds=["ADD"])
    delta = (Add(section="others", content="b"), Remove(id="others-00001"))
    done = run(playbook("a"), *delta, limits=limits)
    assert ids(done.playbook) == ["others-00001", "others-00002"]
    assert [one["reason"] for one in rejected(done)] == ["REMOVE is not enabled"]


def test_operations_see_what_the_ones_before_left() -> None:
    delta = (
        Add(section="others", content="a"),
        Tag(id="others-00001", votes=Votes(helpful=1)),
        Remove(id="others-00001"),
        Tag(id="others-00001", votes=Votes(helpful=1)),
    )
    done = run(START, *delta)
    assert [one["event"] for one in done.events] == ["accepted"] * 3 + ["rejected"]
    assert done.touched == ()


@given(playbooks(), deltas)
@examples(80)
def test_apply_is_pure_deterministic_and_keeps_its_promises(book: Playbook, delta: list) -> None:
    before = book.dump()
    done = run(book, *delta)
    assert run(book, *delta) == done
    assert book.dump() == before
    assert len(done.events) == len(delta)
    json.dumps(done.events)
    check(done.playbook)
    said, says = ([comparable(one.content) for one in some.bullets] for some in (book, done.playbook))
    assert len(set(says)) == len(says) or len(set(said)) < len(said)
    fresh = [number for number in numbers(done.playbook) if number not in numbers(book)]
    assert all(book.next_number <= number < done.playbook.next_number for number in fresh)
    for one in done.playbook.bullets:
        assert one is book.index.get(one.id) or one.changed == 7


@given(playbooks(), deltas, deltas)
@examples(40)
def test_two_deltas_one_after_the_other_are_one(book: Playbook, first: list, second: list) -> None:
    assert run(run(book, *first).playbook, *second).playbook == run(book, *first, *second).playbook


def numbers(book: Playbook) -> list[int]:
    return [one.number for one in book.bullets]


def check(book: Playbook) -> None:
    assert len(set(ids(book))) == book.size
    assert numbers(book) == sorted(numbers(book))
    assert all(number < book.next_number for number in numbers(book))
    for one in book.bullets:
        assert one.section in book.sections
        assert one.content == clean(one.content) != ""
        assert one.tokens == count(one.line + "\n")
        assert min(one.helpful, one.harmful, one.neutral) >= 0
