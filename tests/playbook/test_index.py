"""The index of a playbook's bullets: versions that share blocks are what one made anew is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contrib.retrieval.bm25 import LexicalIndex
from ace_bench.contrib.retrieval.retriever import Retriever
from ace_bench.contrib.retrieval.typos import TypoCorrector
from ace_bench.playbook.bullets import BulletIndex, comparable
from ace_bench.playbook.embeddings import HashingEmbedder
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refiner

from .making import SAMPLE, SECTIONS, bullet, examples

WORDS = ("bond", "lease", "coupon", "ratio", "inventory", "login", "token", "playlist")
NUMBERS = (1, 2, 3, 254, 255, 256, 257, 700, 5000)
"""In five blocks, some of them next to each other."""

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
bullets = st.builds(
    lambda number, text, section, helpful, harmful: bullet(number, text, section, helpful=helpful, harmful=harmful),
    *(st.sampled_from(NUMBERS), texts, st.sampled_from(SECTIONS[:2]), st.integers(0, 2), st.integers(0, 5)),
)
changes = st.lists(st.tuples(st.lists(bullets, max_size=4), st.sets(st.integers(0, 8), max_size=3)), max_size=5)


def versions(steps):
    """Yield an index after each change and what it should hold, by id."""
    index, held = BulletIndex(), {}
    for put, places in steps:
        gone = [bullet_id for place, bullet_id in enumerate(held) if place in places]
        index = index.changed(put=put, gone=gone)
        held = {key: value for key, value in held.items() if key not in gone} | {one.id: one for one in put}
        held = dict(sorted(held.items(), key=lambda item: (item[1].number, item[0])))
        yield index, held


def book_of(index):
    return Playbook.build_from(index.bullets, sections=SECTIONS)


@examples(100)
@given(changes)
def test_an_index_holds_what_was_put_into_it_in_order_of_creation(steps):
    before, known = BulletIndex(), {}
    for index, held in versions(steps):
        assert list(index.items()) == list(held.items())
        assert index.bullets == tuple(held.values())
        assert len(index) == len(held)
        assert "others-99999" not in index
        assert "nothing" not in index
        for one in index.bullets:
            same = [other.id for other in index.bullets if comparable(other.content) == comparable(one.content)]
            assert index.find_by_content(comparable(one.content)) == same[0]
            assert index.find_by_content(comparable(one.content), besides=same) is None
        put, gone = index.since(before)
        assert {key: value for key, value in known.items() if key not in gone} | {one.id: one for one in put} == held
        assert all(known.get(one.id) != one for one in put)
        before, known = index, held


@examples(100)
@given(changes)
def test_a_version_shows_what_a_playbook_made_anew_shows(steps):
    book = Playbook.start(SECTIONS)
    for index, _ in versions(steps):
        earlier, book = book, book.with_index(index)
        fresh = replace(book_of(index), next_number=book.next_number)
        assert book == fresh
        assert (book.digest, book.tokens) == (fresh.digest, fresh.tokens)
        assert [book.render(SAMPLE)[name] for name in ("playbook", "counters")] == [
            fresh.render(SAMPLE)[name] for name in ("playbook", "counters")
        ]
        assert earlier.patched(book.patch(earlier)) == book


def with_own_numbers(steps):
    """Give each number one bullet, as a playbook does: of bullets that are alike in all else, the first counts."""
    return [([one for one in put if one.section == SECTIONS[one.number % 2]], places) for put, places in steps]


@examples(60)
@given(changes.map(with_own_numbers), st.lists(st.sampled_from((*WORDS, "lese")), min_size=1, max_size=4).map(" ".join))
def test_what_followed_the_versions_finds_what_a_fresh_one_finds(steps, query):
    words = LexicalIndex()
    modes = ("bm25", "embeddings", "features")
    following = {mode: retriever(mode) for mode in modes}
    refiner = Refiner(HashingEmbedder(dim=64), threshold=0.7)
    for index, _ in versions(steps):
        words.update(index.blocks)
        assert words.scores(query).tobytes() == LexicalIndex(index.blocks).scores(query).tobytes()
        book = Playbook.start(SECTIONS).with_index(index)
        for mode in modes:
            assert following[mode].ranked(book, query) == retriever(mode).ranked(book_of(index), query)
        touched = list(index)[::2]
        fresh = Refiner(HashingEmbedder(dim=64), threshold=0.7)
        assert refiner.refine(book, touched, step=1) == fresh.refine(book, touched, step=1)


def retriever(mode):
    return Retriever(
        mode=mode,
        top_k=3,
        duplicates=1.0,
        embedder=HashingEmbedder(dim=64),
        cross_encoder="",
        typos=TypoCorrector(max_learned=5),
    )


def test_a_change_leaves_other_blocks_as_they_are():
    index = BulletIndex().changed(put=[bullet(number, f"bullet {number}") for number in range(1, 1001)])
    later = index.changed(put=[replace(index["others-00300"], helpful=1), bullet(1001, "new")])
    assert [one is other for one, other in zip(index.blocks, later.blocks, strict=True)] == [True, False, True, False]
    assert len(index) == 1000
    with pytest.raises(KeyError):
        index.changed(gone=["others-01001"])


def test_a_question_that_is_asked_again_is_answered_from_memory_only_while_the_texts_stay(monkeypatch):
    one = retriever("embeddings")
    book = Playbook.build_from([bullet(n, word) for n, word in enumerate(WORDS, start=1)], sections=SECTIONS)
    asked = []
    embed = one.embedder.embed
    monkeypatch.setattr(one.embedder, "embed", lambda texts: asked.append(texts) or embed(texts))
    first = one.ranked(book, "lease")
    asked.clear()
    voted = book.with_index(book.index.changed(put=[replace(first[0], helpful=3)]))
    assert one.ranked(voted, "lease") == [replace(first[0], helpful=3), *first[1:]]
    assert not asked
    without = book.with_index(book.index.changed(gone=[first[0].id]))
    assert first[0] not in one.ranked(without, "lease")
    assert asked
