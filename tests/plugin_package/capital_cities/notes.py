"""Last notes: the last questions with the answers known to be right, shown as worked examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ace_bench.contexts.base import ContextValue
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod


@dataclass(frozen=True, kw_only=True)
class LastNotes(ContextValue):
    """Questions with their answers, the oldest first."""

    notes: tuple[tuple[str, str], ...] = ()

    kind: ClassVar[str] = "last_notes"

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``demonstrations``, the same for every sample."""
        shown = [f"Question: {question}\nAnswer: {answer}" for question, answer in self.notes]
        return {"demonstrations": "\n\n".join(shown) or "(none)"}


class Notes(BaseMethod[LastNotes]):
    """Keeps the last ``keep`` questions whose right answer ``labels`` reveal."""

    generator = GeneratorSpec(template="notes", answer_format="text")

    def __init__(self, *, keep: Count) -> None:
        self._keep = keep

    def start(self, arena: Arena) -> LastNotes:
        """Return the context without notes."""
        return LastNotes()

    def update(
        self, context: LastNotes, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[LastNotes]:
        """Add the answers of a batch in the order of its samples."""
        notes, events = context.notes, list[Record]()
        for rollout in rollouts:
            answer = right_answer(rollout)
            if answer is not None:
                notes = (*notes, (rollout.sample.inputs["question"], answer))[-self._keep :]
            events.append({"event": "skipped" if answer is None else "kept", "sample": rollout.sample.id})
        return ContextUpdate(context=LastNotes(notes=notes), events=tuple(events))


def right_answer(rollout: Rollout) -> str | None:
    """Return the answer known to be right, ``None`` if none is."""
    if rollout.fault is not None:
        return None
    if rollout.feedback.gold is not None:
        return rollout.feedback.gold
    return rollout.attempt.answer if rollout.feedback.correct else None
