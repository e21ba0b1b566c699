"""Tagging lessons: how one is worded, read again, and weighed against a passage.

A lesson quotes the words around a number and names the tag that fits there. Similar passages find it by
the words they share, rare words counting more; that is all a reader without a language model can do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.skills.likeness import length_of
from ace_rehearsal.reader.skills.likeness import likenesses as shared_likenesses
from ace_rehearsal.reader.skills.tagging.options import unit_fit
from ace_rehearsal.reader.skills.tagging.passage import Passage, features
from ace_rehearsal.reader.words import is_cue, tokens

_LESSON = re.compile(
    r'(Doubtful: tag|Tag) (\w+) where the text reads "([^"\[\]]*)\[([a-z ]+)\]([^"\[\]]*)"'
    r"(?:; further on: ([^;.]*))?(?:; (not|perhaps) (\w+))?\."
)
_BEFORE, _AFTER, _EXTRA = 11, 6, 5
_LONGEST = 350


@dataclass(frozen=True, kw_only=True)
class TagLesson:
    """One lesson, read: ``tag`` fits (or, when ``doubtful``, may not fit) passages with these features."""

    tag: str
    instead: str
    doubtful: bool
    unit: str
    features: Mapping[str, float]
    length: float


def word_lesson(passage: Passage, tag: str, *, instead: str = "", doubtful: bool = False) -> str:
    """Word a lesson in at most about 350 characters; ``instead`` is the tag it was confused with (or may be)."""
    start = "Doubtful: tag" if doubtful else "Tag"
    link = "perhaps" if doubtful else "not"
    end = f"; {link} {instead}." if instead else "."
    before = [word for word in passage.before if word[0].isalpha()]
    after = [word for word in passage.after if word[0].isalpha()]
    for cut in range(_BEFORE):
        left = " ".join(before[-max(_BEFORE - cut, 3) :])
        right = " ".join(after[: max(_AFTER - cut // 2, 2)])
        further = _further(before[: -max(_BEFORE - cut, 3)], after[max(_AFTER - cut // 2, 2) :], _EXTRA - cut)
        text = f'{start} {tag} where the text reads "{left} [{passage.unit}] {right}"{further}{end}'
        if len(text) <= _LONGEST:
            break
    return text


def _further(before: Sequence[str], after: Sequence[str], most: int) -> str:
    candidates = [word.lower() for word in (*reversed(before), *after) if is_cue(word) and len(word) > 4]
    chosen = list(dict.fromkeys(candidates))[: max(most, 0)]
    return f"; further on: {', '.join(chosen)}" if chosen else ""


@lru_cache(maxsize=16_384)
def read_lessons(content: str) -> tuple[TagLesson, ...]:
    """Read every tagging lesson a text holds; one entry of a playbook normally holds one."""
    return tuple(_lesson(match) for match in _LESSON.finditer(content))


def spoken_lessons(text: str) -> tuple[str, ...]:
    """Lessons of a text in their own wording, each once."""
    return tuple(dict.fromkeys(match[0] for match in _LESSON.finditer(text)))


def _lesson(match: re.Match[str]) -> TagLesson:
    passage = Passage(unit=match[4], before=tuple(tokens(match[3])), after=tuple(tokens(match[5])))
    found = features(passage, tokens(match[6] or ""))
    return TagLesson(
        tag=match[2],
        instead=match[8] or "",
        doubtful=match[1] != "Tag",
        unit=match[4],
        features=found,
        length=length_of(found),
    )


@lru_cache(maxsize=8)
def gather_lessons(contents: tuple[str, ...]) -> tuple[tuple[int, TagLesson], ...]:
    """Tagging lessons of a context, each with the place of the entry it stands in."""
    return tuple((owner, lesson) for owner, content in enumerate(contents) for lesson in read_lessons(content))


def likenesses(lessons: Sequence[tuple[int, TagLesson]], passage: Passage) -> list[tuple[float, int]]:
    """Similarity of a passage to every lesson that shares a feature with it, in about [0, 1], best first."""
    found = [
        (likeness * unit_fit(passage.unit, lessons[place][1].unit), place)
        for likeness, place in shared_likenesses(features(passage), [lesson for _, lesson in lessons])
    ]
    found.sort(key=lambda item: (-item[0], item[1]))
    return found


def same_lesson(first: str, second: str) -> bool:
    """Whether two texts teach the same tag for passages that share most of their features."""
    for one in read_lessons(first):
        for other in read_lessons(second):
            if (one.tag, one.doubtful, one.unit) != (other.tag, other.doubtful, other.unit):
                continue
            shared = sum(min(weight, other.features.get(key, 0.0)) for key, weight in one.features.items())
            smaller = min(sum(one.features.values()), sum(other.features.values()))
            if smaller and shared / smaller > 0.85:
                return True
    return False
