"""A method: show the last questions that the model got wrong, with the right answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ace_bench.contexts.base import ContextValue
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod


@dataclass(frozen=True, kw_only=True)
class Mistakes(ContextValue):
    """Questions with their right answers, the oldest first."""

    questions: tuple[tuple[str, str], ...] = ()

    kind: ClassVar[str] = "mistakes"

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``demonstrations`` of the prompt, the same for every sample."""
        demonstrations = [f"Question: {question}\nAnswer: {answer}" for question, answer in self.questions]
        return {"demonstrations": "\n\n".join(demonstrations) or "(none)"}


class LastMistakes(BaseMethod[Mistakes]):
    """Keeps the last ``keep`` questions that were answered wrong. It needs ``labels=gold``, which shows the answers."""

    generator = GeneratorSpec(template="mistakes", answer_format="text")

    def __init__(self, *, keep: Count) -> None:
        self._keep = keep

    def start(self, arena: Arena) -> Mistakes:
        """Return the context without questions."""
        return Mistakes()

    def update(
        self, context: Mistakes, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Mistakes]:
        """Add the mistakes of one batch, in the order of its samples."""
        questions, events = context.questions, list[Record]()
        for rollout in rollouts:
            feedback = rollout.feedback
            if feedback.gold is not None and not feedback.correct:
                questions = (*questions, (rollout.sample.inputs["question"], feedback.gold))[-self._keep :]
                events.append({"event": "mistake", "sample": rollout.sample.id})
        return ContextUpdate(context=Mistakes(questions=questions), events=tuple(events))
