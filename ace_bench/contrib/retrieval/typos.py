"""Typo correction of document 004: an unknown word becomes the nearest of the playbook, by rules that are its own.

The document learns typos from queries and lets a model validate them. Here two written rules validate a correction,
before its first use and again whenever the playbook has changed, so the same question always gets the same bullets.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping
from difflib import SequenceMatcher

from ace_bench.contrib.retrieval.bm25 import stem_of, words_of
from ace_bench.core.settings import Whole

_SHORTEST, _LONG = 5, 8
_LIKE = 0.8
"""The least share of common letters in order, 0 to 1 (document 004, ``similarity_threshold``)."""
_WORD = re.compile(r"[^\W_]+")


class TypoCorrector:
    """Corrects words of five and more letters that the playbook does not have.

    A correction begins with the same letter, is at least ``_LIKE`` like the word, and differs by one edit, from eight
    letters on by two; another form of a known word is no typo. At most ``max_learned`` typos are remembered, and the
    least recently used go first. 0 disables the correction. ``validate`` may be a function, such as a model, that must
    also agree to a correction.
    """

    def __init__(self, *, max_learned: Whole = 0):
        self._most = max_learned
        self.validate: Callable[[str, str], bool] | None = None
        self._learnt: OrderedDict[str, str | None] = OrderedDict()
        self._known: set[str] = set()
        self._by_start: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._vocabulary: Collection[str] = ()

    @property
    def is_on(self) -> bool:
        """Whether typos are corrected."""
        return self._most > 0

    @property
    def learnt(self) -> Mapping[str, str]:
        """The corrections that are remembered."""
        return {typo: word for typo, word in self._learnt.items() if word is not None}

    def update(self, vocabulary: Collection[str]) -> None:
        """Replace the known words by another version's; learnt corrections must be validated again."""
        self._vocabulary = vocabulary
        self._learnt.clear()
        for word in [word for word in vocabulary if word not in self._known]:
            self._known.add(word)
            self._by_start[word[0], len(word)].append(word)
            self._by_stem[stem_of(word)].append(word)

    def corrected(self, query: str) -> str:
        """Return the query with its typos corrected."""
        return _WORD.sub(lambda match: self._correction(match[0]), query) if self.is_on else query

    def _correction(self, written: str) -> str:
        word = written.casefold()
        if len(word) < _SHORTEST or not word.isalpha() or word in self._vocabulary or not words_of(word):
            return written
        if word in self._learnt:
            nearest = self._learnt.pop(word)
        else:
            nearest = self._nearest_word(word)
            if nearest and self.validate and not self.validate(word, nearest):
                nearest = None
        self._learnt[word] = nearest
        if len(self._learnt) > self._most:
            self._learnt.popitem(last=False)
        return nearest or written

    def _nearest_word(self, word: str) -> str | None:
        """Return the nearest valid word; of equally near ones the first in alphabetical order."""
        if any(form in self._vocabulary for form in self._by_stem.get(stem_of(word), ())):
            return None
        allowed = 2 if len(word) >= _LONG else 1
        near: list[tuple[float, str]] = []
        for length in range(len(word) - allowed, len(word) + allowed + 1):
            for candidate in self._by_start.get((word[0], length), ()):
                matcher = SequenceMatcher(None, candidate, word, autojunk=False)
                if matcher.quick_ratio() < _LIKE or candidate not in self._vocabulary:
                    continue
                similarity = matcher.ratio()
                if similarity >= _LIKE and edits(word, candidate) <= allowed:
                    near.append((-similarity, candidate))
        return min(near)[1] if near else None


def edits(first: str, second: str) -> int:
    """Count insertions, deletions, replacements and swaps of adjacent letters that turn one word into the other."""
    rows: dict[int, list[int]] = defaultdict(list)
    rows[0] = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        rows[i] = [i]
        for j, b in enumerate(second, start=1):
            least = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                least = min(least, rows[i - 2][j - 2] + 1)
            rows[i].append(least)
    return rows[len(first)][-1]
