"""One item of a question, and the lessons of a context that are most similar to it, which vote on its answer.

``Item`` is the interface between the kinds of questions and the vote.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from ace_bench.backbones.embedded.lessons import Entry, Lesson, find_lessons
from ace_bench.backbones.embedded.words import is_cue, stem, tokens

NUMBER_OF_LESSONS = 12
"""The maximum number of lessons that vote on one item."""
LEAST_TRUST = 0.2
"""An entry below this trust is not used; it corresponds to five harmful counts and no helpful one."""


@dataclass(frozen=True, kw_only=True)
class Item(ABC):
    """``cue`` is the text that a lesson about this item quotes. There is a subclass for each kind of question."""

    cue: str

    verb: ClassVar[str]
    """The verb of lessons about such items."""
    weight: ClassVar[float] = 10.0
    """The weight of an identical lesson, compared with a guess from the question's words."""
    least: ClassVar[float] = 0.12
    """Similarity below which a lesson is not used."""

    @abstractmethod
    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        """The answer that a lesson gives here, its slots filled from the item, and how well they fit, in (0, 1]."""

    @abstractmethod
    def guesses(self) -> Mapping[str, float]:
        """Guesses without any lesson, with scores of about [0, 1]; at least one."""

    def payload(self, answer: str) -> str:
        """The payload of a lesson that leads to an answer, "" if there is none."""
        return answer

    def is_same(self, first: str, second: str) -> bool:
        """Whether two answers are equivalent."""
        return " ".join(first.lower().split()) == " ".join(second.lower().split())

    def spoil(self, answer: str) -> str:
        """A different answer, which is wrong if this one is right."""
        return next((guess for guess in self.guesses() if not self.is_same(guess, answer)), answer[::-1])

    def index(self, entries: Sequence[Entry]) -> Index:
        """The lessons of a context that may apply to this item."""
        return Index([entry.content for entry in entries], self.verb)


def choose(item: Item, entries: Sequence[Entry], wrong: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The reader's mechanism: the lessons most similar to an item vote for their answers.

    Returns the best answer and the ids of the entries that voted for it. A vote's weight is the squared similarity
    times the fit of the slots times the trust in the entry; part of it counts against the answer that the lesson
    calls wrong. An answer in ``wrong`` is only given without another.
    """
    index = item.index(entries)
    scores = dict(item.guesses())
    cited: dict[str, list[str]] = {}
    for likeness, position in index.nearest(item.cue, NUMBER_OF_LESSONS):
        if likeness < item.least:
            break
        lesson, owner = index.lessons[position], entries[index.owners[position]]
        if not lesson.payload and lesson.instead in scores:
            scores[lesson.instead] -= item.weight * likeness**2 * owner.trust
        filled = item.fill(lesson, index) if lesson.payload and owner.trust > LEAST_TRUST else None
        if filled is None:
            continue
        answer, fit = filled
        vote = item.weight * likeness**2 * fit * owner.trust
        scores[answer] = scores.get(answer, 0.0) + vote
        if lesson.instead in scores:
            scores[lesson.instead] -= vote / 2
        if owner.id:
            cited.setdefault(answer, []).append(owner.id)
    allowed = [answer for answer in scores if not any(item.is_same(answer, mistake) for mistake in wrong)]
    best = max(allowed or scores, key=lambda answer: scores[answer])
    return best, tuple(dict.fromkeys(cited.get(best, [])))


def split_answer(text: str, count: int) -> list[str]:
    """The answers to a question of ``count`` items, "" for those that are absent."""
    if count == 1:
        return [text.strip()]
    parts = [part.strip() for part in text.strip().split(",")]
    return (parts + [""] * count)[:count]


Features = Mapping[str, float]
_BLOCK, _YOUNG = 50, 20
_REACH, _LEAST, _PAIR = 7.0, 0.1, 0.7


class Block(NamedTuple):
    """The lessons with one verb of some entries of a context, and an inverted index over their features.

    ``owners`` are the positions of the lessons' entries.
    """

    lessons: tuple[Lesson, ...]
    owners: tuple[int, ...]
    postings: Mapping[str, Sequence[tuple[int, float]]]


class Index:
    """The lessons of one verb in a context.

    Blocks are cached, so that a context that has grown by one entry needs only one new block.
    """

    def __init__(self, contents: Sequence[str], verb: str):
        cuts = range(0, len(contents), _BLOCK)
        self.blocks = [_block(tuple(contents[cut : cut + _BLOCK]), verb) for cut in cuts]
        self.lessons = [lesson for block in self.blocks for lesson in block.lessons]
        self.owners = [cut + owner for cut, block in zip(cuts, self.blocks, strict=True) for owner in block.owners]

    def nearest(self, cue: str, most: int) -> list[tuple[float, int]]:
        """The ``most`` lessons most similar to a cue: similarity of about [0, 1] and position, best first.

        Rare features weigh more. Features are summed in the order of the question, so that a result never depends on
        hashes.
        """
        features = text_features(cue)
        total = max(len(self.lessons), _YOUNG) + 1
        postings = {feature: [block.postings.get(feature, ()) for block in self.blocks] for feature in features}
        rarity = {feature: math.log(total / (sum(map(len, lists)) + 0.5)) for feature, lists in postings.items()}
        scores: dict[int, float] = {}
        for feature, weight in features.items():
            value, start = weight * rarity[feature] ** 2, 0
            for block, positions in zip(self.blocks, postings[feature], strict=True):
                for position, posted in positions:
                    scores[start + position] = scores.get(start + position, 0.0) + value * posted
                start += len(block.lessons)
        length = math.sqrt(math.fsum((weight * rarity[feature]) ** 2 for feature, weight in features.items()))
        scale = length * math.fsum(rarity.values()) / (len(rarity) or 1) or 1.0
        ranked = heapq.nlargest(most, scores, key=lambda position: (scores[position], -position))
        return [(scores[position] / scale, position) for position in ranked]


@lru_cache(maxsize=512)
def _block(contents: tuple[str, ...], verb: str) -> Block:
    lessons: list[Lesson] = []
    owners: list[int] = []
    postings: dict[str, list[tuple[int, float]]] = {}
    for owner, content in enumerate(contents):
        for lesson in find_lessons(content):
            if lesson.verb == verb:
                features = text_features(lesson.cue)
                length = math.sqrt(math.fsum(weight * weight for weight in features.values())) or 1.0
                for feature, weight in features.items():
                    postings.setdefault(feature, []).append((len(lessons), weight / length))
                lessons.append(lesson)
                owners.append(owner)
    return Block(tuple(lessons), tuple(owners), postings)


@lru_cache(maxsize=16_384)
def text_features(cue: str) -> Features:
    """Stems of the content words, and pairs of adjacent ones.

    If a part of the cue is in brackets, words farther from it weigh less.
    """
    before, focus, after = cue.partition("[")
    behind = tokens(after.partition("]")[2])
    features: dict[str, float] = {}
    for feature, weight in (
        [*_side(tokens(before)[::-1], 1.0), *_side(behind, -1.0)] if focus else _side(tokens(cue), 0.0)
    ):
        features[feature] = max(weight, features.get(feature, 0.0))
    return features


def _side(side_tokens: Sequence[str], side: float) -> list[tuple[str, float]]:
    features: list[tuple[str, float]] = []
    previous = ""
    for distance, word in enumerate(side_tokens):
        if is_cue(word):
            key = stem(word)
            weight = max(1.0 / (1.0 + abs(side) * distance / _REACH), _LEAST)
            features.append((key, weight))
            if previous:
                features.append((f"{key}+{previous}" if side > 0 else f"{previous}+{key}", _PAIR * weight))
            previous = key
    return features
