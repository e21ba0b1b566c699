"""Last notes: the last right answers, shown as examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_bench.contexts.base import ContextValue
from ace_bench.core.arena import Arena
from ace_bench.core.method import ContextUpdate
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod


@dataclass(frozen=True, kw_only=True)
class LastNotes(ContextValue):
    """Questions with their answers, the oldest first."""

    notes: tuple[tuple[str, str], ...] = ()

    kind = "last_notes"

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``demonstrations``."""
        shown = [f"Question: {question}\nAnswer: {answer}" for question, answer in self.notes]
        return {"demonstrations": "\n\n".join(shown) or "(none)"}


class Notes(BaseMethod[LastNotes]):
    """Keeps the last ``keep`` answers that labels reveal."""

    generator = GeneratorSpec(template="notes", reply="text")

    def __init__(self, *, keep: Count) -> None:
        self._keep = keep

    def start(self, arena: Arena) -> LastNotes:
        """Return the context without notes."""
        return LastNotes()

    def update(
        self, context: LastNotes, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[LastNotes]:
        """Add the answers of a batch."""
        new = [(one.sample.inputs["question"], one.feedback.gold) for one in rollouts if one.feedback.gold]
        return ContextUpdate(context=LastNotes(notes=(*context.notes, *new)[-self._keep :]))
