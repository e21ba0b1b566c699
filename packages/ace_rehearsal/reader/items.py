"""One item of a question: the interface between the kinds of questions and the voting mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ace_rehearsal.reader.lessons import Entry, Lesson
from ace_rehearsal.reader.retrieval import Index

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
    weight: ClassVar[float]
    """The weight of an identical lesson relative to the guess from the words alone."""
    least: ClassVar[float] = 0.1
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

    def same(self, one: str, other: str) -> bool:
        """Whether two answers are equivalent."""
        return " ".join(one.lower().split()) == " ".join(other.lower().split())

    def spoiled(self, answer: str) -> str:
        """A different answer, which is wrong if this one is right."""
        return next((guess for guess in self.guesses() if not self.same(guess, answer)), answer[::-1])

    def index(self, entries: Sequence[Entry]) -> Index:
        """The lessons of a context that may apply to this item."""
        return Index([entry.content for entry in entries], self.verb)


def choose(item: Item, entries: Sequence[Entry], wrong: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """The reader's mechanism: the lessons most similar to an item vote for their answers.

    Returns the best answer and the ids of the entries that voted for it. A vote's weight is the squared similarity
    times the fit of the slots times the trust in the entry; part of it counts against the answer that the lesson
    calls wrong. An answer in ``wrong`` is only given where there is no other.
    """
    index = item.index(entries)
    scores = dict(item.guesses())
    cited: dict[str, list[str]] = {}
    for likeness, place in index.nearest(item.cue, NUMBER_OF_LESSONS):
        if likeness < item.least:
            break
        lesson, owner = index.lessons[place], entries[index.owners[place]]
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
    open_ones = [answer for answer in scores if not any(item.same(answer, other) for other in wrong)]
    best = max(open_ones or scores, key=lambda answer: scores[answer])
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
