"""What the memories share: finished attempts as prompts show them, whether they succeeded, and the items of a reply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.encoding import convert
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, Span, exactly
from ace_bench.core.prompts import Transcript
from ace_bench.core.replies import ask
from ace_bench.core.settings import Count
from ace_bench.core.types import Labels, Record, Rollout, Sample
from ace_bench.methods.base import BaseMethod, ask_role
from ace_bench.playbook.embeddings import Embedder

Item = TypeVar("Item", bound=msgspec.Struct)
Shown = TypeVar("Shown", bound="ShownAttempt")

SELF_JUDGE = "self_judge"
"""The role that says whether an attempt succeeded, and its template."""

ATTEMPT_FIELDS = frozenset(("trajectory", "reasoning", "answer", "observed"))
"""Fields that an attempt fills, beside its sample's."""


class SelfJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of the role ``self_judge``."""

    reasoning: str = ""
    success: bool


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A rollout with its verdict, ``None`` if the rollout or the judge failed, and the judge's reasons."""

    rollout: Rollout
    success: bool | None
    reasons: str = ""
    events: tuple[Record, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MemoryValue(ContextValue):
    """A context of items, the oldest first in the field that ``grows``; ``tokens`` of an item is its length."""

    @property
    def tokens(self) -> int:
        """Sum over all items."""
        return sum(item.tokens for item in self._items)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self._items)

    def shrink(self) -> Self | None:
        """Return a version without the oldest quarter; ``None`` without items."""
        fewer: dict[str, Any] = {str(self.grows): self._items[-(-len(self._items) // 4) :]}
        return replace(self, **fewer) if self._items else None

    @property
    def _items(self) -> tuple[Any, ...]:
        items: tuple[Any, ...] = getattr(self, str(self.grows))
        return items


@dataclass(frozen=True, kw_only=True)
class NearestValue(MemoryValue):
    """A memory that shows a sample only its nearest items."""

    @abstractmethod
    def select(self, sample: Sample, nearest: NearestTexts) -> Self:
        """Return the part that a sample is shown."""

    def find_nearest(self, sample: Sample, nearest: NearestTexts, top_k: int) -> list[Any]:
        """Return the ``top_k`` items whose questions are most like a sample's, the most similar last."""
        neighbors = nearest.find([item.question for item in self._items], near=[sample.asked], top_k=top_k)
        return [self._items[index] for index, _ in neighbors]


N = TypeVar("N", bound=NearestValue)


@dataclass(kw_only=True, eq=False)
class NearestMethod(BaseMethod[N]):
    """Shows each sample the ``top_k`` items whose questions are most like its own."""

    top_k: Count
    embedder: Embedder

    def __post_init__(self) -> None:
        """Share what is embedded between samples."""
        self._nearest = NearestTexts(self.embedder)

    @property
    def embedders(self) -> Sequence[Embedder]:
        """What finds similar questions."""
        return (self.embedder,)

    def select(self, context: N, sample: Sample) -> N:
        """Return the items nearest to the sample."""
        return context.select(sample, self._nearest)


@dataclass(frozen=True, kw_only=True)
class ShownAttempt:
    """An attempt with the steps that a prompt shows."""

    steps: Transcript


@dataclass(frozen=True)
class ShownAttempts(Generic[Shown]):
    """Attempts in a prompt; outputs of the longest give way first, then the first attempts."""

    items: tuple[Shown, ...]

    @property
    def size(self) -> int:
        """Number of attempts and their outputs."""
        return sum(1 + item.steps.size for item in self.items)

    def shrink(self) -> Self | None:
        """Return a shorter version; ``None`` for one attempt without older outputs."""
        longest_index = max(range(len(self.items)), key=lambda number: self.items[number].steps.size)
        steps = self.items[longest_index].steps.shrink()
        if steps is not None:
            longest = replace(self.items[longest_index], steps=steps)
            return type(self)((*self.items[:longest_index], longest, *self.items[longest_index + 1 :]))
        return type(self)(self.items[1:]) if len(self.items) > 1 else None


def attempt_fields(rollout: Rollout, steps: Transcript) -> Mapping[str, Any]:
    """Return a sample's fields and those in ``ATTEMPT_FIELDS``; ``steps`` are as many as fit into the prompt.

    ``observed`` is what the environment showed, without the grader's report.
    """
    feedback = rollout.feedback
    return {
        **rollout.sample.inputs,
        "trajectory": steps.text if steps.turns else "",
        "reasoning": rollout.attempt.reasoning,
        "answer": rollout.attempt.answer or "",
        "observed": feedback.message.removesuffix(feedback.report or "").strip(),
    }


def judge(rollouts: Sequence[Rollout], arena: Arena) -> list[Judged]:
    """Return rollouts with their verdicts, in order; calls are made only where ``labels`` hides the verdict."""
    return arena.map(lambda rollout: _judge(rollout, arena), rollouts)


def judge_calls(arena: Arena, samples: int) -> Mapping[str, Span]:
    """Return how many calls the judge makes for a number of samples, for estimates."""
    return {SELF_JUDGE: exactly(samples)} if arena.labels is Labels.NONE else {}


def valid_items(
    values: Sequence[Any], kind: type[Item], *, clean: Callable[[Item], Item], most: int, role: str
) -> tuple[list[Item], list[Record]]:
    """Return the first ``most`` values as cleaned items, and an event for each value that is none or beyond these."""
    valid: list[Item] = []
    refused: list[Record] = []
    for index, value in enumerate(values):
        try:
            if index >= most:
                raise ValueError(f"more than {most} in one reply")
            item = clean(convert(value, kind))
            valid.append(convert(msgspec.to_builtins(item), kind))  # cleaning may leave nothing of a text
        except ValueError as error:
            refused.append({"event": "refused", "role": role, "item": index, "reason": str(error)})
    return valid, refused


def about_sample(sample: Sample, events: Iterable[Record]) -> list[Record]:
    """Return events with the sample that they are about."""
    return [{"sample": sample.id, **event} for event in events]


def check_saved(initial: str | None, description: str) -> None:
    """Raise ``SettingError`` if the memory to start from is not there."""
    if initial is not None and not Path(initial).is_file():
        raise SettingError(f"initial={initial} is not a file: give saved {description}, or null")


def _judge(rollout: Rollout, arena: Arena) -> Judged:
    if rollout.fault is not None:
        return Judged(rollout=rollout, success=None)
    if rollout.feedback.correct is not None:
        return Judged(rollout=rollout, success=rollout.feedback.correct)

    def send(steps: Transcript) -> SelfJudgement:
        messages = arena.prompts.render(SELF_JUDGE, attempt_fields(rollout, steps))
        return ask(arena.lm(SELF_JUDGE, rollout.key), messages, SelfJudgement)

    reply, events = ask_role(SELF_JUDGE, Transcript(rollout.attempt.trajectory), send)
    if reply is None:
        return Judged(rollout=rollout, success=None, events=events)
    verdict = {"event": "judged_success" if reply.success else "judged_failure"}
    return Judged(rollout=rollout, success=reply.success, reasons=reply.reasoning, events=(*events, verdict))
