"""A cheatsheet as a context: one text that Dynamic Cheatsheet rewrites completely (paper, sections 4.2 and C.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import GeneratorSpec, Sample

EMPTY = "(empty)"


class PastRollout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rollout for later retrieval: its question, its output, and the feedback that ``labels`` allowed."""

    question: str
    output: str
    feedback: str = ""
    reference: str = ""

    @property
    def text(self) -> str:
        """The rollout as a prompt shows it."""
        truth = (("Feedback", self.feedback), ("Reference answer", self.reference))
        truth_text = "".join(f"\n{label}: {text}" for label, text in truth if text)
        return f"Question: {self.question}\nOutput: {self.output}{truth_text}"


@dataclass(frozen=True, kw_only=True)
class Cheatsheet(ContextValue):
    """The text, its length in tokens and, for retrieval (DC-RS), the earlier rollouts in their order."""

    text: str = ""
    text_tokens: int = 0
    episodes: tuple[PastRollout, ...] = ()

    kind = "cheatsheet"
    generator = GeneratorSpec(template="cheatsheet", answer_format="xml", code_runs=4)

    @property
    def tokens(self) -> int:
        """Length of the text; earlier rollouts are not part of the generator's prompt."""
        return self.text_tokens

    @property
    def size(self) -> int:
        """Number of lines that are not blank."""
        return sum(1 for line in self.text.splitlines() if line.strip())

    def rewritten(self, text: str, *, count: TokenCounter) -> Cheatsheet:
        """Return the cheatsheet with another text."""
        return replace(self, text=text, text_tokens=count(text))

    def with_rollout(self, rollout: PastRollout) -> Cheatsheet:
        """Return the cheatsheet with one more rollout."""
        return replace(self, episodes=(*self.episodes, rollout))

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``cheatsheet``."""
        return {"cheatsheet": self.text or EMPTY}
