"""Long context that simply keeps everything: every question seen so far with an answer, no retrieval, no curation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.method import Arena
from ace_bench.core.settings import Share
from ace_bench.core.types import GeneratorSpec, Labels, Rollout, Sample
from ace_field.attempts import AppendingMethod, MemoryValue, own_answer

SEPARATOR = "\n\n"
_SHOWN: Mapping[Labels, Literal["reference", "verdict", "own"]] = {
    Labels.GOLD: "reference",
    Labels.CORRECTNESS: "verdict",
    Labels.NONE: "own",
}


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, its text in a prompt, and the text's length in tokens."""

    question: str
    text: str
    tokens: int


@dataclass(frozen=True, kw_only=True)
class History(MemoryValue):
    """All pairs, the oldest first. A prompt shows the newest that take at most ``room`` tokens, ``None`` for all.

    ``answers`` says whose they are: reference answers, the model's own with the verdict, or its own alone.
    """

    pairs: tuple[Pair, ...] = ()
    room: int | None = None
    answers: Literal["reference", "verdict", "own"] = "own"

    kind: ClassVar[str] = "history"
    generator = GeneratorSpec(template="history", answer_format="text")
    grows = "pairs"

    def with_pair(self, pair: Pair) -> Self:
        """Return the history with one more pair, the newest; an earlier one of the same question goes."""
        return self.changed(pairs=(*(one for one in self.pairs if one.question != pair.question), pair))

    def visible(self) -> Self:
        """Return the history with the newest pairs that fit into ``room``."""
        if self.room is None:
            return self
        totals = accumulate(pair.tokens for pair in reversed(self.pairs))
        hidden = sum(total > self.room for total in totals)
        return replace(self, pairs=self.pairs[hidden:]) if hidden else self

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields ``past_answers``, "" without pairs, and ``answers``."""
        return {"past_answers": SEPARATOR.join(pair.text for pair in self.pairs), "answers": self.answers}


H = TypeVar("H", bound=History)


class HistoryMethod(AppendingMethod[H]):
    """Appends a text for every sample; a prompt that is too long goes without the oldest quarter until it fits."""

    @abstractmethod
    def text(self, rollout: Rollout, context: H) -> str | None:
        """Return what is appended for a rollout; ``None`` for nothing."""

    def select(self, context: H, sample: Sample) -> H:
        """Return the newest texts that fit."""
        return context.visible()

    def append(self, context: H, rollout: Rollout, count: TokenCounter) -> H | None:
        """Append a text for a rollout."""
        text = self.text(rollout, context)
        return None if text is None else context.with_pair(Pair(rollout.sample.asked, text, count(text + SEPARATOR)))


def room_in(arena: Arena, fill: float) -> int | None:
    """Return the most tokens of all texts in a prompt: a share of the generator's context length, where it is known."""
    length = arena.context_length("generator")
    return None if length is None else int(fill * length)


@dataclass(kw_only=True, eq=False)
class LongContext(HistoryMethod[History]):
    """Appends every question with an answer and shows them all.

    With ``labels=gold`` the answers are the reference answers, with ``correctness`` the model's own with the verdict,
    with ``none`` its own alone. Where the context length of the generator's backbone is known, a prompt shows the
    newest texts that take at most the share ``fill`` of it.
    """

    generator = GeneratorSpec(template="history", answer_format="text")

    fill: Share

    def start(self, arena: Arena) -> History:
        """Return the history without pairs."""
        return History(room=room_in(arena, self.fill), answers=_SHOWN[arena.labels])

    def text(self, rollout: Rollout, context: History) -> str | None:
        """Return a pair as text; ``None`` if an attempt has no answer or no verdict to show."""
        feedback, answer = rollout.feedback, own_answer(rollout.attempt)
        if context.answers == "reference" and feedback.gold is not None:
            answer = feedback.gold
        shows = context.answers == "verdict"
        if answer is None or rollout.fault is not None or (shows and feedback.correct is None):
            return None
        return as_text(rollout.sample, answer, feedback=f"{'' if feedback.correct else 'not '}correct" if shows else "")


def as_text(sample: Sample, answer: str, *, reasoning: str = "", feedback: str = "") -> str:
    """Return a question and its answer as prompts show them."""
    lines = (("Question", sample.asked), ("Reasoning", reasoning), ("Answer", answer), ("Feedback", feedback))
    return "\n".join(f"{name}: {text}" for name, text in lines if text or name == "Answer")
