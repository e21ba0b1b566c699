"""Re-rankers: a weighted sum of features of query and text, which needs no download, and cross-encoders.

The first stands where document 004 has its cross-encoder (stage 3). Its weights were fitted on the tuning half of the
labelled queries of both wordings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ace_bench.contrib.retrieval.bm25 import Scores, stem_of, words_of
from ace_bench.contrib.retrieval.expansion import EXPANSIONS
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require

Rarity = Callable[[str], float]

_GRAM = 3
_LONGEST_ACRONYM = 5


class Weights(NamedTuple):
    """The weight of each feature; the fields say what they measure, all in [0, 1]."""

    related: float
    """Rarity-weighted share of the query's words that the text has, by their stems or in words of the same meaning."""
    covered: float
    """Rarity-weighted share of the text's words that the query has."""
    pairs: float
    """Share of the query's adjacent stems that are within three words of each other in the text."""
    acronym: float
    """1 if a word of the query is made of the first letters of words in the text, or the reverse."""
    grams: float
    """Cosine similarity of the sets of character 3-grams."""
    lexical: float
    """The BM25 score, relative to the best candidate."""
    semantic: float
    """The embeddings' similarity."""


WEIGHTS = Weights(related=6.71, covered=3.78, pairs=1.36, acronym=2.01, grams=3.85, lexical=1.68, semantic=1.94)


class _Text(NamedTuple):
    words: tuple[str, ...]
    stems: tuple[str, ...]
    grams: frozenset[str]
    initials: str


@lru_cache(maxsize=16_384)
def _text(text: str) -> _Text:
    words = words_of(text)
    grams = frozenset().union(*map(_grams, words))
    return _Text(words, tuple(map(stem_of, words)), grams, "".join(word[0] for word in words))


@lru_cache(maxsize=65_536)
def _grams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[start : start + _GRAM] for start in range(len(padded) - _GRAM + 1))


@lru_cache(maxsize=4_096)
def _related_stems(stem: str) -> frozenset[str]:
    return frozenset(map(stem_of, EXPANSIONS.get(stem, ())))


def features(query: str, text: str, rarity: Rarity) -> tuple[float, ...]:
    """Return the features of ``Weights`` but for the last two, which the earlier stages give."""
    query_text, note = _text(query), _text(text)
    if not query_text.words or not note.words:
        return (0.0,) * (len(Weights._fields) - 2)
    weights = [rarity(word) for word in query_text.words]
    total = sum(weights) or 1.0
    stems = set(note.stems)
    query_stems = set(query_text.stems)
    texts = [rarity(word) for word in note.words]
    return (
        sum(w for w, s in zip(weights, query_text.stems, strict=True) if s in stems or _related_stems(s) & stems)
        / total,
        sum(w for w, stem in zip(texts, note.stems, strict=True) if stem in query_stems) / (sum(texts) or 1.0),
        _near_pairs(query_text.stems, note.stems),
        float(_acronym(query_text, note) or _acronym(note, query_text)),
        len(query_text.grams & note.grams) / (len(query_text.grams) * len(note.grams)) ** 0.5,
    )


def _near_pairs(query_stems: Sequence[str], stems: Sequence[str]) -> float:
    pairs = [pair for pair in pairwise(query_stems) if pair[0] != pair[1]]
    if not pairs:
        return 0.0
    near = {(stems[i], stems[j]) for i in range(len(stems)) for j in range(i + 1, min(i + 4, len(stems)))}
    return sum((a, b) in near or (b, a) in near for a, b in pairs) / len(pairs)


def _acronym(short: _Text, long: _Text) -> bool:
    return any(1 < len(word) <= _LONGEST_ACRONYM and word in long.initials for word in short.words if word.isalpha())


def feature_matrix(
    query: str, texts: Sequence[str], *, rarity: Rarity, lexical: Scores, semantic: Scores
) -> npt.NDArray[np.float64]:
    """Return all features: shape (texts, features)."""
    computed = np.array([features(query, text, rarity) for text in texts], dtype=np.float64)
    best = float(lexical.max(initial=0.0)) or 1.0
    return np.column_stack([computed.reshape(len(texts), -1), lexical / best, semantic])


def scores(matrix: npt.NDArray[np.float64], weights: Weights = WEIGHTS) -> Scores:
    """Return a score per row, rounded so that machines agree on the order."""
    rounded: Scores = np.round(matrix @ np.array(weights), 6).astype(np.float32)
    return rounded


if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class Reranker(Protocol):
    """Scores texts for a query."""

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return a score per text, higher for more relevant."""
        ...


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder by name or path. The model loads with the first call, even an empty one."""

    def __init__(self, model: str):
        require("a cross-encoder", "sentence_transformers", otherwise="use retrieval without reranking")
        self._name = model
        self._model: CrossEncoder | None = None

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the model's scores; raises ``ConfigError`` if the model cannot be loaded."""
        model = self._load()
        if not texts:
            return np.zeros(0, dtype=np.float32)
        return np.asarray(model.predict([(query, text) for text in texts], show_progress_bar=False), dtype=np.float32)

    def _load(self) -> CrossEncoder:
        if self._model is None:
            from sentence_transformers import CrossEncoder

            try:
                self._model = CrossEncoder(self._name, max_length=512)
            except (OSError, ValueError) as error:
                cause = " ".join(str(error).split())
                raise ConfigError(
                    f"the cross-encoder {self._name!r} cannot be loaded ({cause}): name the folder of one, or a model "
                    "of the hub that can be downloaded"
                ) from error
        return self._model
