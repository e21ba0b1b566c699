"""StreamBench's baselines with a memory: Self-StreamICL, MemPrompt and GrowPrompt (arXiv 2406.08747, section 4)."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec

from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import GENERATOR, TokenCounter
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, Learning, Workload
from ace_bench.core.settings import Count, Protocol
from ace_bench.core.types import GeneratorSpec, Labels, Rollout, Sample
from ace_field.attempts import AppendingMethod, NearestMethod, NearestValue, own_answer

_SEPARATOR = "\n\n"

Order = Literal["similar_last", "similar_first", "random"]
Verdicts = Literal["all", "correct", "incorrect"]


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

    ``recall`` picks the ``top_k`` entries nearest by question, or the latest ones in their order. ``order`` sorts
    the nearest ones. Of these, ``shown`` keeps all, or those with one verdict; ``verdicts`` says whether prompts name
    it.
    """

    entries: tuple[MemoryEntry, ...] = ()
    recall: Literal["nearest", "latest"] = "nearest"
    top_k: int = 16
    order: Order = "similar_last"
    shown: Verdicts = "all"
    verdicts: bool = True

    kind: ClassVar[str] = "memory"
    generator = GeneratorSpec(template="remembered", answer_format="text")
    grows = "entries"

    def with_entry(self, entry: MemoryEntry, *, replaces: bool = True) -> Memory:
        """Return the memory with one more entry, the last; with ``replaces`` an earlier one of the same question goes.

        Where only the latest are recalled, older ones go, too.
        """
        entries = (*(one for one in self.entries if not replaces or one.question != entry.question), entry)
        kept = entries[-self.top_k :] if self.recall == "latest" else entries
        return self.changed(entries=kept)

    def select(self, sample: Sample, nearest: NearestTexts) -> Memory:
        """Return the memory with only the entries that the sample is shown, in the order of the prompt."""
        if self.recall == "latest":
            return self.visible()
        chosen = self.find_nearest(sample, nearest, self.top_k)
        if self.order == "similar_first":
            chosen.reverse()
        elif self.order == "random":
            random.Random(sample.asked).shuffle(chosen)  # the same order when a run is continued
        return replace(self, entries=tuple(chosen)).visible()

    def visible(self) -> Memory:
        """Return the memory with only the entries whose verdict is to be shown."""
        if self.shown == "all":
            return self
        return replace(self, entries=tuple(one for one in self.entries if one.correct == (self.shown == "correct")))

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the ``entries``, their text ``past_answers``, "" without any, and ``verdicts``: if it names them."""
        texts = (one.text(verdict=self.verdicts) for one in self.entries)
        return {"past_answers": _SEPARATOR.join(texts), "entries": self.entries, "verdicts": self.verdicts}

    def shrink(self) -> Memory | None:
        """Return a version without the least similar or oldest quarter; ``None`` without entries."""
        if self.order != "similar_first" or not self.entries:
            return super().shrink()
        return replace(self, entries=self.entries[: 3 * len(self.entries) // 4])


@dataclass(kw_only=True, eq=False)
class StreamMemory(AppendingMethod[Memory]):
    """Stores the model's own answers with the verdict right or wrong, and makes no calls of its own.

    Reference answers are never stored. Of an agent's attempt the code that it ran is stored. With
    ``protocol=authors`` an entry keeps the reasoning before an answer, if the agent asks for it
    (``self_stream_icl_cot`` in StreamBench's code), and a question that comes again has several entries; with ``ours``
    the last one replaces the others.
    """

    generator = GeneratorSpec(template="remembered", answer_format="text")

    follows = "stream-bench/stream-bench@cf72f26"

    protocol: Protocol

    @abstractmethod
    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries; prompts then show the task alone."""

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if verdicts are hidden."""
        if arena.labels is Labels.NONE:
            raise ConfigError(
                "a memory of right and wrong answers needs verdicts, which labels=none hides: use labels=correctness"
            )

    def append(self, context: Memory, rollout: Rollout, count: TokenCounter) -> Memory | None:
        """Store an answer with its verdict; ``None`` where either is missing, or not to be stored."""
        attempt, correct = rollout.attempt, rollout.feedback.correct
        answer = own_answer(attempt)
        if rollout.fault is not None or answer is None or correct is None or not (correct or context.verdicts):
            return None  # without their verdicts wrong answers would mislead
        authors = self.protocol == "authors"
        rationale = attempt.reasoning if authors and attempt.ended is None else ""
        entry = MemoryEntry(question=rollout.sample.asked, answer=answer, correct=correct, rationale=rationale)
        return context.with_entry(entry.measured(count), replaces=not authors)

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample, shown as many others."""
        return replace(super().workload(arena, learning), shown_samples=self.start(arena).top_k)


@dataclass(kw_only=True, eq=False)
class SimilarMemory(NearestMethod[Memory], StreamMemory):
    """Shows each sample the ``top_k`` stored questions most like its own.

    ``remember=correct`` stores right answers only and shows no verdicts (Self-StreamICL); ``all`` stores and shows
    both (MemPrompt). ``order`` sorts the entries in the prompt; ``shown`` keeps those with one verdict. Several
    ``generators`` share the memory and answer in turn, from the second on as in StreamBench's code (MAM-StreamICL).
    """

    remember: Literal["correct", "all"]
    order: Order
    shown: Verdicts
    generators: Count = 1

    def __post_init__(self) -> None:
        """Name the roles that answer in turn."""
        super().__post_init__()
        first, *others = (GENERATOR, *(f"{GENERATOR}_{number}" for number in range(2, self.generators + 1)))
        self.answering_roles = (*others, first)

    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries."""
        return Memory(top_k=self.top_k, order=self.order, shown=self.shown, verdicts=self.remember == "all")


@dataclass(kw_only=True, eq=False)
class RecentMemory(StreamMemory):
    """Shows every sample the latest ``top_k`` answers, the oldest first (GrowPrompt)."""

    top_k: Count
    shown: Verdicts

    def start(self, arena: Arena) -> Memory:
        """Return the memory without entries."""
        return Memory(recall="latest", top_k=self.top_k, shown=self.shown)

    def select(self, context: Memory, sample: Sample) -> Memory:
        """Return the entries with the verdicts to show."""
        return context.visible()
