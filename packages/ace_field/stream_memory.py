"""StreamBench's baselines with a memory: Self-StreamICL, MemPrompt and GrowPrompt (arXiv 2406.08747, section 4)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

from ace_bench.contexts.playbook.embed import Embedder
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.arena import Arena
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import ContextUpdate
from ace_bench.core.settings import Count
from ace_bench.core.types import Attempt, GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.core.workload import Learning, Workload, exactly
from ace_bench.methods.base import BaseMethod
from ace_field.memory import Memory, MemoryEntry, Order, Verdicts


class StreamMemory(BaseMethod[Memory]):
    """Stores the model's own answers with the verdict right or wrong, and makes no calls of its own.

    Reference answers are never stored. Of an agent's attempt the code that it ran is stored.
    """

    generator = GeneratorSpec(template="remembered", reply="text")

    @abstractmethod
    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries; prompts are then those of the task alone."""

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` where verdicts are hidden."""
        if arena.labels is Labels.NONE:
            raise ConfigError(
                "a memory of right and wrong answers needs verdicts, which labels=none hides: use labels=correctness"
            )

    def update(self, context: Memory, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[Memory]:
        """Store the answers of a batch; no call is made."""
        memory, events, count = context, list[Record](), arena.counter("generator")
        for rollout in rollouts:
            entry = None if rollout.fault is not None else _entry(rollout)
            stored = entry is not None and self.stores(correct=entry[1])
            if entry is not None and stored:
                question = rollout.sample.inputs["question"]
                memory = memory.with_entry(
                    MemoryEntry.measured(question=question, answer=entry[0], correct=entry[1], count=count)
                )
            events.append({"sample": rollout.sample.id, "event": "remembered" if stored else "skipped"})
        return ContextUpdate(context=memory, events=tuple(events))

    def stores(self, *, correct: bool) -> bool:
        """Whether an answer with this verdict is stored."""
        del correct
        return True

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample and no other calls."""
        del arena
        return Workload(rollouts=exactly(learning.samples), roles={})


class SimilarMemory(StreamMemory):
    """Shows each sample the ``top_k`` stored questions most like its own.

    ``remember=correct`` stores right answers only and shows no verdicts (Self-StreamICL); ``all`` stores and shows
    both (MemPrompt). ``order`` is that of the entries in the prompt; ``shown`` keeps those with one verdict.
    """

    def __init__(
        self,
        *,
        remember: Literal["correct", "all"],
        top_k: Count,
        order: Order,
        shown: Verdicts,
        embedder: Embedder,
    ):
        self._only_correct = remember == "correct"
        self._start = Memory(top_k=top_k, order=order, shown=shown, verdicts=not self._only_correct)
        self._embedder = embedder
        self._nearest = NearestTexts(embedder)

    @property
    def embedders(self) -> Sequence[Embedder]:
        """What finds similar questions."""
        return (self._embedder,)

    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries."""
        return self._start

    def stores(self, *, correct: bool) -> bool:
        """Whether an answer with this verdict is stored."""
        return correct or not self._only_correct

    def select(self, context: Memory, sample: Sample) -> Memory:
        """Return the entries nearest to the sample."""
        return context.select(sample, self._nearest)


class RecentMemory(StreamMemory):
    """Shows every sample the latest ``top_k`` answers, the oldest first (GrowPrompt)."""

    def __init__(self, *, top_k: Count, shown: Verdicts):
        self._start = Memory(recall="latest", top_k=top_k, shown=shown)

    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries."""
        return self._start

    def select(self, context: Memory, sample: Sample) -> Memory:
        """Return the entries with the verdicts to show."""
        del sample
        return context.visible()


def _entry(rollout: Rollout) -> tuple[str, bool] | None:
    """Return the answer and its verdict; ``None`` where either is missing."""
    answer, correct = _answer(rollout.attempt), rollout.feedback.correct
    return None if answer is None or correct is None else (answer, correct)


def _answer(attempt: Attempt) -> str | None:
    """Return the answer, or the code that an agent ran in its environment."""
    if attempt.ended is None:
        return attempt.answer
    return "\n".join(turn.action for turn in attempt.trajectory if turn.action) or None
