"""Retrieval: finds the lessons of a context that are most similar to a question, and weighs their counters."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.lessons import Lesson, find_lessons
from ace_rehearsal.reader.words import is_cue, stem, tokens

Features = Mapping[str, float]
_BLOCK, _YOUNG = 50, 20
_REACH, _LEAST, _PAIR = 7.0, 0.1, 0.7


@dataclass(frozen=True, eq=False)
class Block:
    """Some entries of a context: their lessons of one verb, and an inverted index over their features.

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
        own = text_features(cue)
        total = max(len(self.lessons), _YOUNG) + 1
        found = {feature: [block.postings.get(feature, ()) for block in self.blocks] for feature in own}
        rarity = {feature: math.log(total / (sum(map(len, lists)) + 0.5)) for feature, lists in found.items()}
        scores: dict[int, float] = {}
        for feature, weight in own.items():
            value, start = weight * rarity[feature] ** 2, 0
            for block, places in zip(self.blocks, found[feature], strict=True):
                for place, other in places:
                    scores[start + place] = scores.get(start + place, 0.0) + value * other
                start += len(block.lessons)
        length = math.sqrt(math.fsum((weight * rarity[feature]) ** 2 for feature, weight in own.items()))
        scale = length * math.fsum(rarity.values()) / (len(rarity) or 1) or 1.0
        ranked = heapq.nlargest(most, scores, key=lambda place: (scores[place], -place))
        return [(scores[place] / scale, place) for place in ranked]


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
    return Block(lessons=tuple(lessons), owners=tuple(owners), postings=postings)


def merged_features(parts: Sequence[tuple[str, float]]) -> Features:
    """Each feature with its greatest weight."""
    found: dict[str, float] = {}
    for feature, weight in parts:
        if weight > found.get(feature, 0.0):
            found[feature] = weight
    return found


@lru_cache(maxsize=16_384)
def text_features(cue: str) -> Features:
    """Stems of the content words, and pairs of adjacent ones.

    If a part of the cue is in brackets, words farther from it weigh less.
    """
    before, focus, rest = cue.partition("[")
    if not focus:
        return merged_features(_side(tokens(cue), 0.0))
    return merged_features([*_side(tokens(before)[::-1], 1.0), *_side(tokens(rest.partition("]")[2]), -1.0)])


def _side(words: Sequence[str], side: float) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    previous = ""
    for distance, word in enumerate(words):
        if is_cue(word):
            key = stem(word)
            weight = max(1.0 / (1.0 + abs(side) * distance / _REACH), _LEAST)
            found.append((key, weight))
            if previous:
                found.append((f"{key}+{previous}" if side > 0 else f"{previous}+{key}", _PAIR * weight))
            previous = key
    return found
