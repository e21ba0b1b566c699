"""Several playbooks become one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.playbook.bullets import comparable
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.refine import Refiner
from ace_playbooks.merge import NamedPlaybook, merge_playbooks
from tests.contexts.making import SECTIONS, bullet, contents, count, examples, ids, playbook, playbooks


def merged(*books: Playbook, refiner: Refiner | None = None) -> Playbook:
    named = [NamedPlaybook(name=f"p{place}.json", playbook=book) for place, book in enumerate(books)]
    return merge_playbooks(named, count=count, refiner=refiner)


def votes(book: Playbook) -> dict[str, tuple[int, int, int]]:
    found: dict[str, Counter[str]] = {}
    for one in book.bullets:
        cast = {"helpful": one.helpful, "harmful": one.harmful, "neutral": one.neutral}
        found.setdefault(comparable(one.content), Counter()).update(cast)
    return {text: (cast["helpful"], cast["harmful"], cast["neutral"]) for text, cast in found.items()}


def test_equal_bullets_become_one_with_all_votes_and_say_where_they_come_from() -> None:
    first = Playbook.build_from([bullet(3, "Look it up", helpful=2, sources=("s1",), changed=4)], sections=SECTIONS)
    others = [bullet(1, "New"), bullet(3, "look  it UP", helpful=1, harmful=1, sources=("s9",))]
    book = merged(first, Playbook.build_from(others, sections=["more"]))
    kept, new = book.bullets
    assert (kept.id, kept.content, kept.helpful, kept.harmful) == ("others-00003", "Look it up", 3, 1)
    assert kept.sources == ("p0.json#others-00003", "s1", "p1.json#others-00003", "s9")
    assert (new.id, new.content, new.sources) == ("others-00004", "New", ("p1.json#others-00001",))
    assert book.sections == (*SECTIONS, "more")
    assert {one.changed for one in book.bullets} == {-1}
    assert book.next_number > 4
    assert Playbook.load(book.dump()) == book


@given(playbooks())
@examples(40)
def test_one_playbook_stays_as_it_is_and_counts_once_at_its_first_place(book: Playbook) -> None:
    assert merged(book) == merged(book, book) == book
    assert merged(book, playbook("second"), book) == merged(book, playbook("second"))


@given(st.lists(st.lists(contents, max_size=4), min_size=2, max_size=4))
@examples(60)
def test_the_order_of_the_inputs_changes_neither_contents_nor_counters(texts: list[list[str]]) -> None:
    books = [
        Playbook.build_from([bullet(n, text, helpful=n + place) for n, text in enumerate(some, 1)], sections=SECTIONS)
        for place, some in enumerate(texts)
    ]
    forward, backward = merged(*books), merged(*reversed(books))
    assert votes(forward) == votes(backward)
    assert len(set(ids(forward))) == forward.size
    assert merged(forward) == forward
