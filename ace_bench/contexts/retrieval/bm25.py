"""BM25 over the stems of bullets, in an index that follows the playbook: a change costs what changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from ace_bench.contexts.retrieval.words import stem_of, words_of

Scores = npt.NDArray[np.float32]

_K1, _B = 1.5, 0.75
_FIRST_SIZE = 4


class _Postings:
    """The texts that hold a stem, and how often; ``live`` counts those that are still in the playbook."""

    __slots__ = ("counts", "live", "size", "slots")

    def __init__(self) -> None:
        self.slots = np.zeros(_FIRST_SIZE, dtype=np.int32)
        self.counts = np.zeros(_FIRST_SIZE, dtype=np.float32)
        self.size = self.live = 0

    def add(self, slot: int, count: int) -> None:
        if self.size == len(self.slots):
            self.slots = np.concatenate([self.slots, np.zeros_like(self.slots)])
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
        self.slots[self.size], self.counts[self.size] = slot, count
        self.size += 1
        self.live += 1


class LexicalIndex:
    """BM25 (Lucene's: k1 1.5, b 0.75, an idf that is never negative) over the stems of a playbook's distinct texts.

    ``update`` brings the index to other texts; scores are then equal, to the bit, to those of an index made anew.
    Texts that are gone keep their postings until they outnumber the others.
    """

    def __init__(self, texts: Sequence[str] = ()):
        self._clear()
        self.update(texts)

    def _clear(self) -> None:
        self._postings: dict[str, _Postings] = {}
        self._texts_with: Counter[str] = Counter()
        self._slots: dict[str, int] = {}
        self._lengths = np.zeros(0, dtype=np.float32)
        self._used = 0
        self._total = 0
        self._places = np.zeros(0, dtype=np.intp)

    def update(self, texts: Sequence[str]) -> None:
        """Make ``texts`` the indexed ones, in this order."""
        wanted = dict.fromkeys(texts)
        for gone in self._slots.keys() - wanted.keys():
            del self._slots[gone]
            words = words_of(gone)
            self._total -= len(words)
            for stem in set(map(stem_of, words)):
                self._postings[stem].live -= 1
            for word in set(words):
                self._texts_with[word] -= 1
                if not self._texts_with[word]:
                    del self._texts_with[word]
        if self._used > 2 * len(wanted):
            self._clear()
        self._add([text for text in wanted if text not in self._slots])
        self._places = np.fromiter(map(self._slots.__getitem__, texts), np.intp, len(texts))

    def _add(self, texts: Sequence[str]) -> None:
        needed = self._used + len(texts)
        if needed > len(self._lengths):
            grown = np.zeros(max(needed, 2 * len(self._lengths)), dtype=np.float32)
            grown[: self._used] = self._lengths[: self._used]
            self._lengths = grown
        for text in texts:
            words = words_of(text)
            slot = self._slots[text] = self._used
            self._used += 1
            self._lengths[slot] = len(words)
            self._total += len(words)
            for stem, count in Counter(map(stem_of, words)).items():
                self._postings.setdefault(stem, _Postings()).add(slot, count)
            self._texts_with.update(set(words))

    @property
    def vocabulary(self) -> Collection[str]:
        """All words of the texts."""
        return self._texts_with.keys()

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word's stem; one that no text has counts as the rarest."""
        return self._idf(self._postings.get(stem_of(word)))

    def _idf(self, found: _Postings | None) -> float:
        n, live = len(self._slots), found.live if found is not None else 0
        return math.log(1 + (n - live + 0.5) / (live + 0.5))

    def scores(self, query: str) -> Scores:
        """Return a score per text; 0 if it shares no stem with the query. A repeated stem counts again."""
        sums = np.zeros(self._used, dtype=np.float32)
        mean = self._total / max(len(self._slots), 1)
        for stem, times in Counter(map(stem_of, words_of(query))).items():
            found = self._postings.get(stem)
            if found is None or not found.live:
                continue
            slots, counts = found.slots[: found.size], found.counts[: found.size]
            norm = np.float32(_K1 * (1 - _B)) + np.float32(_K1 * _B / mean) * self._lengths[slots]
            sums[slots] += np.float32(times * self._idf(found)) * (counts / (counts + norm))
        scores: Scores = sums[self._places]
        return scores
