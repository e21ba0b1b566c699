"""One thing that a question asks, as every kind of question offers it to the reader's one mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ace_rehearsal.reader.lessons import Entry, Lesson
from ace_rehearsal.reader.retrieval import Index

NUMBER_OF_LESSONS = 12
"""Lessons that are weighed for one item."""
LEAST_TRUST = 0.2
"""An entry below this trust is not used: five harmful verdicts that no helpful one makes up for."""


@dataclass(frozen=True, kw_only=True)
class Item(ABC):
    """``cue`` is the text that a lesson about this item quotes. There is a subclass for each kind of question."""

    cue: str

    verb: ClassVar[str]
    """What lessons about such items say to do."""
    weight: ClassVar[float]
    """What a lesson that is just like the item counts against what its words alone suggest."""
    least: ClassVar[float] = 0.1
    """Similarity below which a lesson is not used."""

    @abstractmethod
    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        """The answer that a lesson gives here, its slots filled from the item, and how well they fit, in (0, 1]."""

    @abstractmethod
    def guesses(self) -> Mapping[str, float]:
        """Answers that the words suggest without any lesson, with scores in about [0, 1]; at least one."""

    def payload(self, answer: str) -> str:
        """What a lesson says to get to an answer, "" where nothing does."""
        return answer

    def same(self, one: str, other: str) -> bool:
        """Whether two answers say the same."""
        return " ".join(one.lower().split()) == " ".join(other.lower().split())

    def spoiled(self, answer: str) -> str:
        """Another answer, which is wrong where this one is right."""
        return next((guess for guess in self.guesses() if not self.same(guess, answer)), answer[::-1])

    def index(self, entries: Sequence[Entry]) -> Index:
        """The lessons of a context that may say something about this item."""
        return Index([entry.content for entry in entries], self.verb)


def choose(item: Item, entries: Sequence[Entry]) -> tuple[str, tuple[str, ...]]:
    """The reader's one mechanism: the lessons nearest to an item vote for the answers that they give here.

    Returns the best answer and the ids of the entries that speak for it. A vote is worth the square of the similarity,
    how well the slots fit, and the trust in the entry; a lesson takes a share of it from the answer it calls wrong.
    """
    index = item.index(entries)
    scores = dict(item.guesses())
    cited: dict[str, list[str]] = {}
    for likeness, place in index.nearest(item.cue, NUMBER_OF_LESSONS):
        if likeness < item.least:
            break
        lesson, owner = index.lessons[place], entries[index.owners[place]]
        filled = item.fill(lesson, index) if owner.trust > LEAST_TRUST else None
        if filled is None:
            continue
        answer, fit = filled
        vote = item.weight * likeness**2 * fit * owner.trust
        scores[answer] = scores.get(answer, 0.0) + vote
        if lesson.instead in scores:
            scores[lesson.instead] -= vote / 2
        if owner.id:
            cited.setdefault(answer, []).append(owner.id)
    best = max(scores, key=lambda answer: scores[answer])
    return best, tuple(dict.fromkeys(cited.get(best, [])))


def joined(answers: Sequence[str]) -> str:
    """The answer to a question of several items."""
    return ",".join(answers)


def split_answer(text: str, count: int) -> list[str]:
    """The answers to a question of ``count`` items, "" for those that are absent."""
    if count == 1:
        return [text.strip()]
    parts = [part.strip() for part in text.strip().split(",")]
    return (parts + [""] * count)[:count]
