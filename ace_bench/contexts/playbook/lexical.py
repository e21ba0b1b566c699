"""BM25 over bullets, and a check for queries that it cannot rank."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from ace_bench.core.errors import ConfigError

Scores = npt.NDArray[np.float32]

_WORD = re.compile(r"[^\W_]+")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CODE = re.compile(r"`|\w\(|\w_\w|[a-z][A-Z]|==|[{}]")
_FILLERS = frozenset(
    _WORD.findall(
        "a an the this that these those it its is are was were be been being am has have had do does did will would "
        "could should may might must can i you we they he she me my your our us them and or but not so if in on at to "
        "for of off from with about up out over there here please just work works working"
    )
)
_MOST_FILLERS, _LEAST_SIGNAL = 0.4, 0.15


@lru_cache(maxsize=16_384)
def words_of(text: str) -> tuple[str, ...]:
    """Words in lower case without fillers; ``DebtInstrument`` and ``debt_instrument`` are two words each."""
    spaced = _INNER_CAPITAL.sub(" ", text)
    return tuple(word for word in _WORD.findall(spaced.casefold()) if word not in _FILLERS)


def is_conversational(query: str, vocabulary: Collection[str]) -> bool:
    """Return whether a query is mostly filler words, with hardly a word of the vocabulary and no code.

    BM25 would rank it by chance matches; embeddings do better ("is this wired up and working in production").
    """
    words = _WORD.findall(query.casefold())
    if not words or _CODE.search(query):
        return False
    fillers = sum(word in _FILLERS for word in words)
    signals = sum(word in vocabulary for word in words if word not in _FILLERS)
    return fillers > _MOST_FILLERS * len(words) and signals < _LEAST_SIGNAL * len(words)


class LexicalIndex:
    """BM25 (Lucene's) over texts."""

    def __init__(self, texts: Sequence[str]):
        import bm25s

        corpus = [list(words_of(text)) for text in texts]
        self._index: Any = bm25s.BM25(method="lucene") if any(corpus) else None
        self._size = len(corpus)
        if self._index is not None:
            self._index.index(corpus, show_progress=False)

    @property
    def vocabulary(self) -> Collection[str]:
        """All words of the texts."""
        return self._index.vocab_dict if self._index is not None else ()

    def scores(self, query: str) -> Scores:
        """Return a score per text; 0 if it shares no word with the query."""
        known = [word for word in words_of(query) if word in self.vocabulary]
        if not known:
            return np.zeros(self._size, dtype=np.float32)
        scores: Scores = self._index.get_scores(known)
        return scores


def require_bm25() -> None:
    """Raise ``ConfigError`` if the library is missing."""
    if find_spec("bm25s") is None:
        raise ConfigError("retrieval by BM25 needs an extra that is not installed: pip install 'ace-bench[retrieval]'")
