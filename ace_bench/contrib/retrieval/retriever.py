"""Fine-grained retrieval (paper, section 3.1): selects the bullets of a playbook that are relevant to a question.

It ranks by shared words (BM25), by embeddings, or by both fused by reciprocal rank; a percentile may cut the weakest
candidates, a cross-encoder or own features may rerank the others, and near-duplicates of a better bullet are left out.
The selection differs between samples, so a server cannot reuse the playbook's part of the prompt: fewer tokens, but
hardly any of them cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from ace_bench.contrib.retrieval import features
from ace_bench.contrib.retrieval.bm25 import LexicalIndex, is_conversational
from ace_bench.contrib.retrieval.expansion import expand
from ace_bench.contrib.retrieval.features import CrossEncoderReranker, Reranker
from ace_bench.contrib.retrieval.typos import TypoCorrector
from ace_bench.core.settings import Count, Similarity, Text
from ace_bench.playbook.bullets import Bullet, BulletIndex
from ace_bench.playbook.embeddings import Embedder, EmbeddingMemo, Matrix, best_indices
from ace_bench.playbook.playbook import Playbook

RetrievalMode = Literal["off", "bm25", "embeddings", "fused", "features", "reranked"]
Percentile = Annotated[float, Meta(ge=0, lt=100, description="a percentile from 0 to below 100")]

_FETCH = 10
"""Candidates per ranking for each bullet that is shown."""
_RANK_CONSTANT = 60

Vector = npt.NDArray[np.float32]


Candidates = Mapping[int, float]
"""Places in the playbook with their scores, the best first."""


class Retriever:
    """Selects at most ``top_k`` bullets for a question (document 004, "Multi-Stage Retrieval Pipeline").

    ``mode`` is the ranking, ``duplicates`` the cosine similarity to a better bullet from which one is left out, and
    ``cross_encoder`` the model of ``reranked``; ``features`` reranks without a model. A query of mostly filler words is
    ranked by embeddings alone, if the mode has them, and never expanded. ``expansion`` adds words of about the same
    meaning to other queries, ``typos`` corrects words that the playbook does not have, and ``percentile`` drops the
    candidates below that percentile of the candidates' scores before they are reranked. ``min_score`` drops bullets
    that the last stage of the mode scores lower.

    ``expander`` adds the words; another one, such as a model, may be set before the first question.

    Embeddings and the index of words follow the playbook from version to version. What was asked before changes
    nothing, so the same question always gets the same bullets. It is safe between threads.
    """

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        mode: RetrievalMode,
        top_k: Count,
        duplicates: Similarity,
        embedder: Embedder,
        cross_encoder: Text | Reranker,
        percentile: Percentile = 0.0,
        min_score: float | None = None,
        expansion: bool = False,
        typos: TypoCorrector | None = None,
    ) -> None:
        self.mode: str = mode
        self._top_k = top_k
        self._duplicates = duplicates
        self.embedder = embedder
        self._memo = EmbeddingMemo(embedder)
        self._lexical = mode in ("bm25", "fused", "features", "reranked")
        self._semantic = mode in ("embeddings", "fused", "features", "reranked")
        self._percentile = percentile
        self._min_score = min_score
        self._expansion = expansion
        self.expander: Callable[[str], str] = expand
        self._typos = typos or TypoCorrector()
        self._indexed = self._lexical or expansion or self._typos.is_on
        self._reranker: Reranker | None = None
        if mode == "reranked":
            self._reranker = CrossEncoderReranker(cross_encoder) if isinstance(cross_encoder, str) else cross_encoder
        self._bullets = BulletIndex()
        self._rows = np.zeros(0, dtype=np.intp)  # of the bullets' embeddings in the memo
        self._answered: dict[str, Sequence[int]] = {}  # the places selected for the latest query
        self._words = LexicalIndex()
        self._lock = threading.Lock()

    def share(self, memo: EmbeddingMemo) -> None:
        """Share a memo of embeddings, if its embedder is equal."""
        if memo.embedder == self.embedder:
            self.embedder, self._memo = memo.embedder, memo

    def prepare(self) -> None:
        """Load the models in use, so that a failure to load one stops the run before the first call."""
        if self.mode != "off":
            self.embedder.embed([])
        if self._reranker is not None:
            self._reranker.scores("", [])

    def select(self, playbook: Playbook, query: str) -> Playbook:
        """Return the playbook with only the selected bullets, in order of creation."""
        if self.mode == "off" or (playbook.size <= self._top_k and self._min_score is None):
            return playbook
        return playbook.with_bullets(
            sorted(self.ranked(playbook, query), key=lambda bullet: (bullet.number, bullet.id))
        )

    def ranked(self, playbook: Playbook, query: str) -> Sequence[Bullet]:
        """Return the selected bullets, the best first."""
        if not playbook.bullets:
            return ()
        with self._lock:  # models, the index and the memo are not thread-safe
            self._follow(playbook.index)
            if query not in self._answered:
                self._answered = {query: self._select(query)}
            return [playbook.bullets[index] for index in self._answered[query]]

    def _select(self, query: str) -> Sequence[int]:
        corrected = self._typos.corrected(query)
        vector = self._memo.embed([self._expand(corrected)])[0] if self._semantic else None
        candidates = self._above_percentile(self._candidates(corrected, vector))
        scores = self._rerank(corrected, candidates, vector)
        least = self._min_score
        return self._distinct(place for place, score in scores.items() if least is None or score >= least)

    def _follow(self, bullets: BulletIndex) -> None:
        """Bring index and embeddings to a version of the playbook; costs what differs from the latest."""
        if self._bullets is bullets:
            return
        before, self._rows, self._bullets = self._rows, self._memo.rows_of(bullets.blocks), bullets
        if np.array_equal(self._rows, before):
            return  # only votes differ
        self._answered = {}
        if self._indexed:
            self._words.update(bullets.blocks)
        if self._typos.is_on:
            self._typos.update(self._words.vocabulary)

    def _expand(self, query: str) -> str:
        if not self._expansion or is_conversational(query, self._words.vocabulary):
            return query
        return self.expander(query)

    def _candidates(self, query: str, vector: Vector | None) -> Candidates:
        """Return the best of the rankings. Two rankings are fused, and a single one stays unchanged."""
        fetch = _FETCH * self._top_k
        rankings: list[Candidates] = []
        if vector is not None:
            places, scores = self._memo.nearest(self._rows, vector, fetch)
            rankings.append(dict(zip(places.tolist(), scores, strict=True)))
        if self._lexical and not (self._semantic and is_conversational(query, self._words.vocabulary)):
            scores = self._words.scores(self._expand(query))
            rankings.append({index: scores[index] for index in best_indices(scores, fetch) if scores[index] > 0})
        if len(rankings) == 1:
            return rankings[0]
        return dict(islice(fuse([[*ranking] for ranking in rankings]).items(), fetch))

    def _above_percentile(self, candidates: Candidates) -> Candidates:
        if not self._percentile or not candidates:
            return candidates
        scores = np.array([*candidates.values()], dtype=np.float32)
        return dict(islice(candidates.items(), int((scores >= np.percentile(scores, self._percentile)).sum())))

    def _rerank(self, query: str, candidates: Candidates, vector: Vector | None) -> Candidates:
        places = [*candidates]
        if self._reranker is not None:
            scores = self._reranker.scores(query, self._contents(places))
        elif self.mode == "features" and vector is not None and places:
            scores = features.scores(self._features(query, places, vector))
        else:
            return candidates
        return {places[n]: scores[n] for n in best_indices(scores, len(places))}

    def explained(self, playbook: Playbook, query: str) -> npt.NDArray[np.float64]:
        """Return the features of every bullet for a query, a row each (``features.Weights``)."""
        with self._lock:
            self._follow(playbook.index)
            return self._features(query, range(playbook.size), self._memo.embed([query])[0])

    def _contents(self, places: Sequence[int]) -> list[str]:
        return [self._bullets.bullets[index].content for index in places]

    def _features(self, query: str, places: Sequence[int], vector: Vector) -> npt.NDArray[np.float64]:
        return features.feature_matrix(
            query,
            self._contents(places),
            rarity=self._words.rarity,
            lexical=self._words.scores(query)[places],
            semantic=self._memo.scores(self._rows[places], vector),
        )

    def _distinct(self, places: Iterable[int]) -> list[int]:
        """Return the best of a ranking without near-duplicates of better ones."""
        kept: list[int] = []
        vectors: list[Matrix] = []
        for index in places:
            if len(kept) == self._top_k:
                break
            vector = self._memo.matrix[self._rows[index]]
            if not kept or float((np.array(vectors) @ vector).max()) < self._duplicates:
                kept.append(index)
                vectors.append(vector)
        return kept


def fuse(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Return places with the sum of their reciprocal ranks, the best first; ties are ordered as in the playbook."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, index in enumerate(ranking, start=1):
            sums[index] = sums.get(index, 0.0) + 1 / (_RANK_CONSTANT + rank)
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
