"""StreamBench's baselines with a memory: Self-StreamICL and MemPrompt (arXiv 2406.08747, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec

from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Workload, exactly
from ace_bench.core.settings import Protocol
from ace_bench.core.types import Attempt, GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.methods.field.attempts import NearestMethod, NearestValue

_SEPARATOR = "\n\n"


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A question, the model's answer, whether it was right, and their length in a prompt in tokens.

    ``rationale`` is the reasoning before the answer, where it is kept.
    """

    question: str
    answer: str
    correct: bool
    rationale: str = ""
    tokens: int = 0

    def measured(self, count: TokenCounter) -> MemoryEntry:
        """Return the entry with its length, with its verdict and the blank line after it."""
        return msgspec.structs.replace(self, tokens=count(self.text(verdict=True) + _SEPARATOR))

    def text(self, *, verdict: bool) -> str:
        """Return the entry as a prompt shows it."""
        lines = [f"Question: {self.question}", f"Answer: {self.answer}"]
        if self.rationale:
            lines.insert(1, f"Rationale: {self.rationale}")
        if verdict:
            lines.append(f"Feedback: {'correct' if self.correct else 'not correct'}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Memory(NearestValue):
    """Entries in the order in which they were stored, and which of them a sample is shown.

    A prompt shows the ``top_k`` entries with the nearest questions, the most similar one last (StreamBench's order).
    ``verdicts`` says whether prompts name the verdict.
    """

    entries: tuple[MemoryEntry, ...] = ()
    top_k: int = 16
    verdicts: bool = True

    kind: ClassVar[str] = "memory"
    generator = GeneratorSpec(template="remembered", answer_format="text")
    grows = "entries"

    def with_entry(self, entry: MemoryEntry, *, replaces: bool = True) -> Memory:
        """Return the memory with one more entry; with ``replaces`` an earlier one of the same question goes."""
        entries = (*(kept for kept in self.entries if not replaces or kept.question != entry.question), entry)
        return self.changed(entries=entries)

    def select(self, sample: Sample, nearest: NearestTexts) -> Memory:
        """Return the memory with only the entries that the sample is shown, in the order of the prompt."""
        return replace(self, entries=tuple(self.find_nearest(sample, nearest, self.top_k)))

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the ``entries``, their text ``past_answers``, "" without any, and ``verdicts``: if it names them."""
        texts = (entry.text(verdict=self.verdicts) for entry in self.entries)
        return {"past_answers": _SEPARATOR.join(texts), "entries": self.entries, "verdicts": self.verdicts}


@dataclass(kw_only=True, eq=False)
class SimilarMemory(NearestMethod[Memory]):
    """Shows each sample the ``top_k`` stored questions most like its own, with the model's own answers.

    ``remember=correct`` stores right answers only and shows no verdicts (Self-StreamICL); ``all`` stores and shows
    both (MemPrompt). Reference answers are never stored. Of an agent's attempt the code that it ran is stored.

    With ``protocol=authors`` an entry keeps the reasoning before an answer, if the agent asks for it
    (``self_stream_icl_cot`` in StreamBench's code), and a question that comes again has several entries; with ``ours``
    the last one replaces the others.
    """

    generator = GeneratorSpec(template="remembered", answer_format="text")

    follows = "stream-bench/stream-bench@cf72f26"

    protocol: Protocol
    remember: Literal["correct", "all"]

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if verdicts are hidden."""
        if arena.labels is Labels.NONE:
            raise ConfigError(
                "a memory of right and wrong answers needs verdicts, which labels=none hides: use labels=correctness"
            )

    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries. Prompts then show only the task."""
        return Memory(top_k=self.top_k, verdicts=self.remember == "all")

    def update(self, context: Memory, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[Memory]:
        """Store the answers of a batch, one after the other; no call is made."""
        events, count = list[Record](), arena.counter("generator")
        for rollout in rollouts:
            entry = self._entry(rollout, verdicts=context.verdicts)
            if entry is not None:
                context = context.with_entry(entry.measured(count), replaces=self.protocol != "authors")
            events.append({"sample": rollout.sample.id, "event": "skipped" if entry is None else "remembered"})
        return ContextUpdate(context=context, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample, shown as many others, and no other calls."""
        return Workload(rollouts=exactly(learning.samples), roles={}, shown_samples=self.top_k)

    def _entry(self, rollout: Rollout, *, verdicts: bool) -> MemoryEntry | None:
        """Return an answer with its verdict; ``None`` where either is missing, or not to be stored."""
        attempt, correct = rollout.attempt, rollout.feedback.correct
        answer = _own_answer(attempt)
        if rollout.fault is not None or answer is None or correct is None or not (correct or verdicts):
            return None  # without their verdicts wrong answers would mislead
        rationale = attempt.reasoning if self.protocol == "authors" and attempt.ended is None else ""
        return MemoryEntry(question=rollout.sample.asked, answer=answer, correct=correct, rationale=rationale)


def _own_answer(attempt: Attempt) -> str | None:
    """Return the answer, or the code that an agent ran in its environment."""
    if attempt.ended is None:
        return attempt.answer
    return "\n".join(turn.action for turn in attempt.trajectory if turn.action) or None
