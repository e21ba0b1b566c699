"""An instruction as a context: what GEPA and MIPROv2 write, MIPROv2 with worked examples (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.demonstrations import Demonstration, shown, without_last_quarter
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import GeneratorSpec, Sample


@dataclass(frozen=True, kw_only=True)
class Instruction(ContextValue):
    """The instruction, its length in tokens, and the examples shown with it (none for GEPA)."""

    text: str
    text_tokens: int = 0
    demonstrations: tuple[Demonstration, ...] = ()

    kind = "instruction"
    generator = GeneratorSpec(template="instructed", reply="json")

    @classmethod
    def measured(cls, text: str, *, count: TokenCounter, demonstrations: tuple[Demonstration, ...] = ()) -> Instruction:
        """Build one with its length in tokens."""
        return cls(text=text, text_tokens=count(text), demonstrations=demonstrations)

    @property
    def tokens(self) -> int:
        """Text and examples."""
        return self.text_tokens + sum(one.tokens for one in self.demonstrations)

    @property
    def size(self) -> int:
        """One for the text, unless it is empty, and one for each example."""
        return bool(self.text) + len(self.demonstrations)

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the fields ``instruction`` and ``demonstrations``."""
        return {"instruction": self.text, "demonstrations": shown(self.demonstrations)}

    def shrink(self) -> Instruction | None:
        """Return a version without the last quarter of the examples; the text is never cut."""
        examples = without_last_quarter(self.demonstrations)
        return None if examples is None else replace(self, demonstrations=examples)
