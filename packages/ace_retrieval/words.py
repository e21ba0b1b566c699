"""Words of texts and queries, their stems, and a check for queries of mostly filler words."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

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
_SUFFIXES = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e", "y")
_SHORTEST_STEM = 3


@lru_cache(maxsize=16_384)
def words_of(text: str) -> tuple[str, ...]:
    """Words in lower case without fillers; ``DebtInstrument`` and ``debt_instrument`` are two words each."""
    spaced = _INNER_CAPITAL.sub(" ", text)
    return tuple(word for word in _WORD.findall(spaced.casefold()) if word not in _FILLERS)


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """Return a word without its ending (plural, past, -ing and the like); numbers and short words stay."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM and word.isalpha():
            stem = word[: -len(suffix)]
            doubled = len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in "ls"
            return stem[:-1] if doubled else stem
    return word


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
