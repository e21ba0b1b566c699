"""What a skill offers: it recognises a kind of question, answers it, and words lessons about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

HELPFUL, HARMFUL, NEUTRAL = "helpful", "harmful", "neutral"


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One entry of the context a prompt shows: a playbook bullet or a demonstration turned into one."""

    id: str
    content: str
    section: str = ""
    helpful: int = 0
    harmful: int = 0

    @property
    def trust(self) -> float:
        """Weight in (0, 1.5) that the counters give this entry; 1 where nothing is counted."""
        return 1.5 * (self.helpful + 2) / (self.helpful + 2 * self.harmful + 3)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the generator says: the answer, the way to it, and the ids of the lessons relied on."""

    text: str
    reasoning: str
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Review:
    """One attempt as a reflector sees it; ``gold`` and ``correct`` are ``None`` where withheld."""

    predicted: str
    reasoning: str
    gold: str | None
    correct: bool | None
    used: tuple[Lesson, ...]


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a reflector finds. ``insights`` are lessons ready for a playbook, empty where nothing was learnt."""

    error: str
    cause: str
    approach: str
    insights: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


class Case(Protocol):
    """One question, understood by the skill that recognised it."""

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Answer under the lessons; ``advice`` is the reflection on earlier attempts ("" on the first)."""
        ...

    def lesson(self, review: Review) -> Diagnosis:
        """Judge an attempt by what the review shows and word what can be learnt."""
        ...

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """Lessons that a worked example of this question with this answer amounts to."""
        ...


class Skill(Protocol):
    """A kind of question the reader can handle. Skills hold no state."""

    name: str

    def recognise(self, background: str, question: str) -> Case | None:
        """Understand a question, or return ``None`` where it is not of this kind."""
        ...

    def insights(self, text: str) -> tuple[str, ...]:
        """Lessons in this skill's wording that occur in a text, such as a reflection."""
        ...

    def section(self, insight: str) -> tuple[str, ...]:
        """Words that the name of a fitting playbook section may hold, best first."""
        ...

    def repeats(self, insight: str, known: str) -> bool:
        """Whether a known entry already says what the insight says."""
        ...
