"""What a grader makes of a question: its reference answer, and how an answer is scored against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Fault
from ace_bench.tasks.qa.columns import Question, accepted_values, text_of


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """``gold`` is the reference answer as text; ``score`` returns the share of points, in [0, 1], of an answer."""

    gold: str
    score: Callable[[str], float]


MakeKey = Callable[[Question], AnswerKey]
"""Makes the key of a question; raises ``DataError`` for an answer that cannot be a reference."""


def accepted(question: Question) -> tuple[str, ...]:
    """Return the accepted answers as text; the first is the reference answer."""
    return tuple(text_of(value, question.where, "answer") for value in accepted_values(question))


def grader_fault(message: str) -> RolloutFault:
    """Return the fault of a grader that cannot score an answer."""
    return RolloutFault(Fault(owner="task", kind="grader", message=message))
