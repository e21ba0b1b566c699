"""Earlier questions with the model's own answers as a context: what StreamBench's baselines show (its section 4)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import GeneratorSpec, Sample

_SEPARATOR = "\n\n"
_DROPPED = 4
"""A prompt that is too long is tried again without one in this many entries."""

Order = Literal["similar_last", "similar_first", "random"]
Verdicts = Literal["all", "correct", "incorrect"]


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, the model's answer, whether it was right, and their length in a prompt in tokens."""

    question: str
    answer: str
    correct: bool
    tokens: int

    @classmethod
    def measured(cls, *, question: str, answer: str, correct: bool, count: TokenCounter) -> MemoryEntry:
        """Build one with its length, with its verdict and the blank line after it."""
        text = _text(question, answer, correct) + _SEPARATOR
        return cls(question=question, answer=answer, correct=correct, tokens=count(text))


def _text(question: str, answer: str, correct: bool | None) -> str:
    verdict = "" if correct is None else f"\nFeedback: {'correct' if correct else 'not correct'}"
    return f"Question: {question}\nAnswer: {answer}{verdict}"


@dataclass(frozen=True, kw_only=True)
class Memory(ContextValue):
    """Entries in the order in which they were stored, and which of them a sample is shown.

    ``recall`` picks the ``top_k`` entries nearest by question, or the latest ones in their order. ``order`` is that of
    the nearest ones. Of these, ``shown`` keeps all, or those with one verdict; ``verdicts`` says whether prompts name
    it.
    """

    entries: tuple[MemoryEntry, ...] = ()
    recall: Literal["nearest", "latest"] = "nearest"
    top_k: int = 16
    order: Order = "similar_last"
    shown: Verdicts = "all"
    verdicts: bool = True

    kind = "memory"
    generator = GeneratorSpec(template="remembered", reply="text")
    grows = "entries"

    @property
    def tokens(self) -> int:
        """Sum over all entries."""
        return sum(entry.tokens for entry in self.entries)

    def with_entry(self, entry: MemoryEntry) -> Memory:
        """Return the memory with one more entry, the last; an earlier one of the same question goes.

        Where only the latest are recalled, older ones go, too.
        """
        entries = (*(one for one in self.entries if one.question != entry.question), entry)
        kept = entries[-self.top_k :] if self.recall == "latest" else entries
        return self.changed(entries=kept)

    def select(self, sample: Sample, nearest: NearestTexts) -> Memory:
        """Return the memory with only the entries that the sample is shown, in the order of the prompt."""
        if self.recall == "latest":
            return self.visible()
        question = sample.inputs["question"]
        found = nearest.find([entry.question for entry in self.entries], near=[question], most=self.top_k)
        chosen = [self.entries[place] for place, _ in found]
        if self.order == "similar_first":
            chosen.reverse()
        elif self.order == "random":
            random.Random(question).shuffle(chosen)  # the same order when a run is continued
        return replace(self, entries=tuple(chosen)).visible()

    def visible(self) -> Memory:
        """Return the memory with only the entries whose verdict is to be shown."""
        if self.shown == "all":
            return self
        return replace(self, entries=tuple(one for one in self.entries if one.correct == (self.shown == "correct")))

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields ``past_answers``, "" without entries, and ``verdicts``: whether it names them."""
        texts = (_text(one.question, one.answer, one.correct if self.verdicts else None) for one in self.entries)
        return {"past_answers": _SEPARATOR.join(texts), "verdicts": self.verdicts}

    def shrink(self) -> Memory | None:
        """Return a version without the least similar or oldest quarter; ``None`` without entries."""
        dropped = -(-len(self.entries) // _DROPPED)
        kept = self.entries[:-dropped] if self.order == "similar_first" else self.entries[dropped:]
        return replace(self, entries=kept) if self.entries else None
