"""Grow-and-refine: filter, join, prune."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.playbook.apply import Add
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.embeddings import HashingEmbedder
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refined, Refiner

from .making import SECTIONS, Angles, bullet, contents, examples, ids, playbook, playbooks, run


def refine(refiner: Refiner, book: Playbook, touched: Sequence[str] | None = None) -> Refined:
    return refiner.refine(book, ids(book) if touched is None else touched, step=9)


def book_of(*bullets: Bullet) -> Playbook:
    return Playbook.build_from(bullets, sections=SECTIONS)


def on_circle(**degrees: float) -> tuple[Playbook, Angles]:
    return playbook(*degrees), Angles(degrees)


def test_a_new_bullet_is_joined_into_the_older_without_a_model() -> None:
    book = book_of(
        bullet(1, "old", "common_mistakes", helpful=2, sources=("a",)),
        bullet(2, "far"),
        bullet(3, "new", helpful=1, harmful=1, neutral=1, sources=("b", "a")),
    )
    refined = refine(Refiner(Angles({"old": 0, "far": 90, "new": 10})), book, ["others-00003"])
    assert refined.playbook.bullets == (
        bullet(1, "old", "common_mistakes", helpful=3, harmful=1, neutral=1, changed=9, sources=("a", "b")),
        bullet(2, "far"),
    )
    assert refined.playbook.next_number == 4
    assert refined.events == (
        {
            "event": "merged",
            "bullet": "cm-00001",
            "merged": ["others-00003"],
            "reason": "similarity 0.985 is at least 0.9",
        },
    )


CIRCLES = [  # degrees, touched, threshold, what each merge joins
    ({"old": 0, "young": 5}, [1], 0.9, [(1, 2)]),  # an old bullet that was reworded takes in the younger
    ({"a": 0, "b": 1, "c": 90}, [3, 77], 0.9, []),  # only touched bullets are compared
    ({"a": 0, "b": 20}, [1, 2], 0.9, [(1, 2)]),
    ({"a": 0, "b": 20}, [1, 2], 0.98, []),
    ({"a": 0, "b": 60}, [1, 2], 0.5, [(1, 2)]),  # the threshold itself is enough
    ({"a": 0, "b": 30, "c": 18}, [3], 0.9, [(2, 3)]),  # the most similar
    ({"a": 0, "b": 30, "c": 15}, [3], 0.9, [(1, 3)]),  # of equals the oldest
    ({"a": 0, "b": 20, "c": 40, "d": 60}, [1, 2, 3, 4], 0.9, [(1, 2), (3, 4)]),  # no further than near the leader
]


@pytest.mark.parametrize(("degrees", "touched", "threshold", "joined"), CIRCLES)
def test_touched_bullets_join_the_most_similar(
    degrees: dict[str, float], touched: list[int], threshold: float, joined: list[tuple[int, int]]
) -> None:
    book, embedder = on_circle(**degrees)
    refined = refine(Refiner(embedder, threshold=threshold), book, [f"others-{number:05d}" for number in touched])
    pairs = [(f"others-{one:05d}", [f"others-{other:05d}"]) for one, other in joined]
    assert [(event["bullet"], event["merged"]) for event in refined.events] == pairs
    assert set(ids(book)) - set(ids(refined.playbook)) == {other for _, (other,) in pairs}
    assert joined or refined.playbook is book


def test_a_group_may_be_joined_further_with_all_its_members() -> None:
    book, embedder = on_circle(a=0, b=14, c=20)
    refined = refine(Refiner(embedder), book, ["others-00003", "others-00002"])
    (left,) = refined.playbook.bullets
    assert left.content == "a"
    assert {one for event in refined.events for one in event["merged"]} == {"others-00002", "others-00003"}


def test_budget_compares_everything_only_when_it_is_exceeded() -> None:
    book, embedder = on_circle(a=0, b=1, c=90)
    relaxed = Refiner(embedder, when="budget", max_tokens=book.tokens)
    assert refine(relaxed, book).playbook is book
    assert embedder.asked == [], "nothing is embedded in vain"
    tight = Refiner(embedder, when="budget", max_tokens=book.tokens - 1)
    assert ids(refine(tight, book, []).playbook) == ["others-00001", "others-00003"]


def test_never_still_filters_and_keeps_the_budget() -> None:
    book = book_of(bullet(1, "bad", harmful=3), bullet(2, "a"), bullet(3, "a b"), bullet(4, "a b c", helpful=1))
    embedder = Angles({})
    refined = refine(Refiner(embedder, when="never", max_tokens=16), book)
    assert [event["event"] for event in refined.events] == ["filtered", "pruned"]
    assert embedder.asked == []


@pytest.mark.parametrize(
    ("helpful", "harmful", "kept"), [(0, 2, True), (0, 3, False), (3, 3, True), (3, 4, False), (9, 4, True)]
)
def test_bullets_that_harm_are_filtered(helpful: int, harmful: int, kept: bool) -> None:
    book = book_of(bullet(1, "a", helpful=helpful, harmful=harmful))
    refined = refine(Refiner(HashingEmbedder()), book, [])
    assert refined.playbook.size == kept
    if not kept:
        reason = f"harmful {harmful}, helpful {helpful}"
        assert refined.events == ({"event": "filtered", "bullet": "others-00001", "reason": reason},)
    assert refine(Refiner(HashingEmbedder(), harmful_min=None), book, []).playbook is book


@pytest.mark.parametrize(
    ("votes", "left", "happened"), [((0, 5), ["good advice"], ["filtered"]), ((2, 2), [], ["merged", "filtered"])]
)
def test_what_harms_is_not_joined_and_votes_that_only_together_tell_of_harm_count_at_once(
    votes: tuple[int, int], left: list[str], happened: list[str]
) -> None:
    first, second = votes
    book = book_of(bullet(1, "good advice", harmful=first), bullet(2, "Good advice", harmful=second))
    refined = refine(Refiner(HashingEmbedder()), book)
    assert [one.content for one in refined.playbook.bullets] == left
    assert [event["event"] for event in refined.events] == happened


def test_pruning_takes_the_least_useful_then_the_stalest() -> None:
    book = book_of(
        bullet(1, "a", helpful=1, changed=0),
        bullet(2, "b", changed=5),
        bullet(3, "c", changed=2),
        bullet(4, "d", harmful=1, changed=8),
        bullet(5, "e", changed=2),
    )
    each = book.bullets[0].tokens
    order = ["others-00004", "others-00003", "others-00005", "others-00002", "others-00001"]
    for left in range(1, 6):
        refined = refine(Refiner(HashingEmbedder(), when="never", max_tokens=left * each), book)
        assert [event["bullet"] for event in refined.events] == order[: 5 - left]
        assert set(ids(refined.playbook)) == set(order[5 - left :])


def test_a_bullet_larger_than_the_budget_goes_first_and_the_rest_is_pruned_to_fit() -> None:
    large = book_of(bullet(1, "small"), bullet(2, "large " * 99, helpful=9))
    refined = refine(Refiner(HashingEmbedder(), max_tokens=20), large, [])
    assert ids(refined.playbook) == ["others-00001"]
    assert "alone it takes" in refined.events[0]["reason"]
    book = playbook(*(f"lesson {number}" for number in range(40)))
    for limit, most in ((-1, 39), (0, 40)):
        left = refine(Refiner(HashingEmbedder(), when="never", max_tokens=book.tokens + limit), book).playbook
        assert left.size == most


def test_many_subjects_are_compared_in_blocks() -> None:
    book = playbook(
        *(f"word{number} token{number * 7} thing{number * 13}" for number in range(300)), "WORD299  token2093 thing3887"
    )
    assert ids(refine(Refiner(HashingEmbedder()), book).playbook) == ids(book)[:300]


refiners = st.fixed_dictionaries(
    {
        "threshold": st.sampled_from([0.5, 0.9, 1.0]),
        "when": st.sampled_from(["delta", "budget", "never"]),
        "max_tokens": st.none() | st.integers(1, 120),
        "harmful_min": st.sampled_from([None, 1, 3]),
    }
).filter(lambda config: config["max_tokens"] is not None or config["when"] != "budget")


@given(playbooks(), refiners, st.booleans())
@examples(80)
def test_the_budget_holds_and_nothing_is_lost_without_an_event(book: Playbook, config: dict, all_touched: bool) -> None:
    refiner = Refiner(HashingEmbedder(dim=64), **config)
    refined = refine(refiner, book, None if all_touched else [])
    after = refined.playbook
    assert config["max_tokens"] is None or after.tokens <= config["max_tokens"]
    assert after.next_number == book.next_number
    named = {event["bullet"] for event in refined.events if event["event"] in ("filtered", "pruned")}
    named |= {bullet_id for event in refined.events for bullet_id in event.get("merged", ())}
    assert set(ids(book)) - set(ids(after)) == named
    assert ids(after) == [bullet_id for bullet_id in ids(book) if bullet_id in after.index]
    json.dumps(refined.events)
    assert refine(refiner, after, []).playbook.size == after.size or config["when"] == "budget"


@given(playbooks(), contents, refiners)
@examples(40)
def test_refinement_does_not_depend_on_what_a_refiner_saw_before(book: Playbook, content: str, config: dict) -> None:
    grown = run(book, Add(section="others", content=content))
    seasoned = Refiner(HashingEmbedder(dim=64), **config)
    refine(seasoned, playbook("something", content, "else"))
    refine(seasoned, book)
    fresh = Refiner(HashingEmbedder(dim=64), **config)
    assert refine(seasoned, grown.playbook, grown.touched) == refine(fresh, grown.playbook, grown.touched)
