"""Fine-grained retrieval (paper, section 3.1): selects the bullets of a playbook that are relevant to a question.

It ranks by shared words (BM25), by embeddings, or by both fused by reciprocal rank; a cross-encoder may rerank the
best; near-duplicates of a better bullet are left out. The selection differs between samples, so a server cannot reuse
the playbook's part of the prompt: fewer tokens, but hardly any of them cached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.embed import Embedder, EmbeddingMemo, Matrix
from ace_bench.contexts.playbook.lexical import LexicalIndex, Scores, is_conversational, require_bm25
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.rerank import CrossEncoderReranker, Reranker
from ace_bench.core.settings import Count, Similarity, Text

RetrievalMode = Literal["off", "bm25", "embeddings", "fused", "reranked"]

_FETCH = 10
"""Candidates per ranking for each bullet that is shown."""
_RANK_CONSTANT = 60
_DECIMALS = 5


class _Prepared(NamedTuple):
    """A playbook with its embeddings and index."""

    bullets: tuple[Bullet, ...]
    contents: tuple[str, ...]
    vectors: Matrix
    words: LexicalIndex | None


class Retriever:
    """Selects at most ``top_k`` bullets for a question.

    ``mode`` is the ranking, ``duplicates`` the cosine similarity to a better bullet from which one is left out, and
    ``cross_encoder`` the model of ``reranked``. A query of mostly filler words is ranked by embeddings alone, if the
    mode has them.

    It caches embeddings and the index of the latest playbook and has no other state, so the same question always gets
    the same bullets. It is safe between threads.
    """

    def __init__(
        self,
        *,
        mode: RetrievalMode,
        top_k: Count,
        duplicates: Similarity,
        embedder: Embedder,
        cross_encoder: Text | Reranker,
    ) -> None:
        self.mode = mode
        self._top_k = top_k
        self._duplicates = duplicates
        self._embedder = embedder
        self._memo = EmbeddingMemo(embedder)
        self._lexical = mode in ("bm25", "fused", "reranked")
        self._semantic = mode in ("embeddings", "fused", "reranked")
        self._reranker: Reranker | None = None
        if self._lexical:
            require_bm25()
        if mode == "reranked":
            self._reranker = CrossEncoderReranker(cross_encoder) if isinstance(cross_encoder, str) else cross_encoder
        self._latest = _Prepared((), (), np.zeros((0, 0), dtype=np.float32), None)
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Load the models in use, so that a failure to load one stops the run before the first call."""
        if self.mode != "off":
            self._memo.rows([""])
        if self._reranker is not None:
            self._reranker.scores("", [])

    def select(self, playbook: Playbook, query: str) -> Playbook:
        """Return the playbook with only the selected bullets, in order of creation."""
        if self.mode == "off" or playbook.size <= self._top_k:
            return playbook
        return playbook.with_bullets(
            sorted(self.ranked(playbook, query), key=lambda bullet: (bullet.number, bullet.id))
        )

    def ranked(self, playbook: Playbook, query: str) -> Sequence[Bullet]:
        """Return the selected bullets, the best first."""
        if not playbook.bullets:
            return ()
        with self._lock:  # models and the memo are not thread-safe
            ready = self._latest = self._prepared(playbook.bullets)
            places = self._places(ready, query)
            if self._reranker is not None:
                scores = self._reranker.scores(query, [ready.contents[place] for place in places])
                places = [places[n] for n in _best(scores, len(places))]
        return [ready.bullets[place] for place in self._distinct(places, ready.vectors)]

    def _prepared(self, bullets: tuple[Bullet, ...]) -> _Prepared:
        latest = self._latest
        if latest.bullets is bullets:
            return latest
        contents = tuple([bullet.content for bullet in bullets])
        if contents == latest.contents:
            return latest._replace(bullets=bullets)
        rows = self._memo.rows(contents)
        vectors = self._memo.matrix[rows]
        return _Prepared(bullets, contents, vectors, LexicalIndex(contents) if self._lexical else None)

    def _places(self, ready: _Prepared, query: str) -> list[int]:
        """Return the ranked indices; two rankings are fused, a single one is kept as it is."""
        fetch = _FETCH * self._top_k
        rankings: list[list[int]] = []
        if self._semantic:
            similarities = np.einsum("ij,j->i", ready.vectors, self._embedder.embed([query])[0])
            rankings.append(_best(np.round(similarities, _DECIMALS), fetch))
        words = ready.words
        if words is not None and not (self._semantic and is_conversational(query, words.vocabulary)):
            scores = words.scores(query)
            rankings.append([place for place in _best(scores, fetch) if scores[place] > 0])
        return rankings[0] if len(rankings) == 1 else fused(rankings)[:fetch]

    def _distinct(self, places: Iterable[int], vectors: Matrix) -> list[int]:
        """Return the best of a ranking without near-duplicates of better ones."""
        kept: list[int] = []
        for place in places:
            if len(kept) == self._top_k:
                break
            if not kept or float((vectors[kept] @ vectors[place]).max()) < self._duplicates:
                kept.append(place)
        return kept


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Fuse rankings by the sum of reciprocal ranks; equal sums are ordered as in the playbook."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            sums[place] = sums.get(place, 0.0) + 1 / (_RANK_CONSTANT + rank)
    return sorted(sums, key=lambda place: (-sums[place], place))


def _best(scores: Scores, most: int) -> list[int]:
    """Return the indices of the highest scores, best first; equal ones are ordered as in the playbook."""
    order: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return order
