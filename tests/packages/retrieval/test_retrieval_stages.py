"""The stages of retrieval: an index that follows the playbook, typos, expansion, percentile, own features."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest
from hypothesis import strategies as st

from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_retrieval.bm25 import LexicalIndex, stem_of, words_of
from ace_retrieval.expansion import expanded
from ace_retrieval.retriever import Retriever
from ace_retrieval.typos import TypoCorrector
from tests.contexts.making import playbook

WORDS = ("bond", "lease", "coupon", "ratio", "inventory", "login", "token", "playlist", "fever", "join")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=12)


def retriever(mode="features", **stages):
    fields = {"top_k": 3, "duplicates": 1.0, "embedder": HashingEmbedder(dim=64), "cross_encoder": "", **stages}
    return Retriever(mode=mode, **fields)


def numbers(bullets):
    return [bullet.number for bullet in bullets]


def test_scores_are_those_of_the_library():
    texts = ["a bond pays a coupon", "coupon coupon rate", "lease payments", "the bond"]
    library = bm25s.BM25(method="lucene")
    library.index([list(map(stem_of, words_of(text))) for text in texts], show_progress=False)
    index = LexicalIndex(playbook(*texts).index.blocks)
    ours = index.scores("coupons bond coupon paying")
    assert set(index.vocabulary) == {word for text in texts for word in words_of(text)}
    assert ours == pytest.approx(library.get_scores(["coupon", "bond", "coupon", "pay"]), rel=1e-5)


def test_a_typo_finds_the_word_it_stands_for():
    book = playbook("inventory is left out", "a coupon is paid", "lease payments", "bonds mature")
    correcting = retriever("bm25", typos=TypoCorrector(max_learned=10))
    assert numbers(correcting.ranked(book, "inventroy")) == [1]
    assert retriever("bm25").ranked(book, "inventroy") == []


def test_corrections_are_validated_and_bounded():
    corrector = TypoCorrector(max_learned=2)
    corrector.update(["inventory", "coupon", "lease", "payment"])
    kept = "payments inverted INVENTORY zzzzz 12345 lase"
    assert corrector.corrected(kept) == kept  # another form, too far, known, unlike any, no word, too short
    assert corrector.corrected("inventroy cuopon") == "inventory coupon"
    assert dict(corrector.learnt) == {"inventroy": "inventory", "cuopon": "coupon"}
    corrector.corrected("paymnet")
    assert len(corrector.learnt) <= 2
    corrector.update(["lease"])
    assert corrector.corrected("inventroy") == "inventroy"
    assert TypoCorrector().corrected("inventroy") == "inventroy"


def test_expansion_reaches_other_words_and_leaves_small_talk_alone():
    book = playbook("deposit slips", "the inventory of a shop", "working hours", "a lease")
    assert retriever("bm25").ranked(book, "warehouse goods") == []
    assert numbers(retriever("bm25", expansion=True).ranked(book, "warehouse goods")) == [2]
    chatty = "is it up and is this what we should pay for or not"
    embedded: list[str] = []

    class Listening(HashingEmbedder):
        def embed(self, texts):
            embedded.extend(texts)
            return super().embed(texts)

    listening = retriever("embeddings", expansion=True, embedder=Listening(dim=64))
    listening.ranked(book, chatty)
    listening.ranked(book, "warehouse")
    assert embedded[-2:] == [chatty, expanded("warehouse")]
    assert "inventory" in expanded("warehouse")


class Newest:
    """A reranker that turns the order of the playbook around."""

    def scores(self, query, texts):
        return np.array([int(text.rsplit(" ", 1)[-1]) for text in texts], dtype=np.float32)


@pytest.mark.parametrize(("percentile", "found"), [(0, [4, 3, 2]), (50, [2, 1])])
def test_a_percentile_drops_weak_candidates_before_they_are_reranked(percentile, found):
    book = playbook("bond coupon 1", "bond coupon 2", "bond rate of a ratio 3", "bond note of a lease 4")
    one = retriever("reranked", cross_encoder=Newest(), percentile=percentile)
    assert numbers(one.ranked(book, "bond coupon")) == found


def test_own_features_know_acronyms_and_other_forms():
    book = playbook("days sales outstanding are counted", "returns on a bond", "the net present value discounts flows")
    assert numbers(retriever(top_k=1).ranked(book, "NPV of it")) == [3]
    assert numbers(retriever(top_k=1).ranked(book, "returning bonds")) == [2]
    assert stem_of("payments") == stem_of("pay") == "pay"
