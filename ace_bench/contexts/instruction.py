"""What a prompt opens with: an instruction that GEPA or MIPROv2 wrote, or worked examples (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.method import Arena
from ace_bench.core.types import GeneratorSpec, Sample

NO_DEMONSTRATIONS = "(none)"
START = "instruction"
"""Template of the instruction that optimisation starts from: its ``user`` block."""
_SEPARATOR = "\n\n"


class Demonstration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A question with its answer and, if known, the reasoning; ``tokens`` is its length in a prompt."""

    question: str
    answer: str
    reasoning: str = ""
    tokens: int = 0

    @classmethod
    def measure(cls, *, question: str, answer: str, count: TokenCounter, reasoning: str = "") -> Demonstration:
        """Build one with its length in tokens, including the blank line after it."""
        text = _text(question, reasoning, answer)
        return cls(question=question, answer=answer, reasoning=reasoning, tokens=count(text + _SEPARATOR))

    @property
    def text(self) -> str:
        """The example as a prompt shows it."""
        return _text(self.question, self.reasoning, self.answer)


def _text(question: str, reasoning: str, answer: str) -> str:
    thought = f"Reasoning: {reasoning}\n" if reasoning else ""
    return f"Question: {question}\n{thought}Answer: {answer}"


def join_demonstrations(demonstrations: Iterable[Demonstration]) -> str:
    """Return examples as one text, in their order."""
    return _SEPARATOR.join(demonstration.text for demonstration in demonstrations) or NO_DEMONSTRATIONS


def drop_last_quarter(demonstrations: Sequence[Demonstration]) -> tuple[Demonstration, ...] | None:
    """Return the examples without the last quarter, which keeps the front of the prompt; ``None`` if there are none."""
    return tuple(demonstrations[: len(demonstrations) * 3 // 4]) if demonstrations else None


@dataclass(frozen=True, kw_only=True)
class Demonstrations(ContextValue):
    """Worked examples in the order in which a prompt shows them."""

    items: tuple[Demonstration, ...] = ()

    kind = "demonstrations"
    generator = GeneratorSpec(template="demonstrated", answer_format="text")

    @property
    def tokens(self) -> int:
        """Sum over the examples."""
        return sum(demonstration.tokens for demonstration in self.items)

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields ``demonstrations`` and, for imported prompts, ``examples``: the same one by one."""
        return {"demonstrations": join_demonstrations(self.items), "examples": self.items}

    def shrink(self) -> Demonstrations | None:
        """Return a version without the last quarter."""
        items = drop_last_quarter(self.items)
        return None if items is None else Demonstrations(items=items)


@dataclass(frozen=True, kw_only=True)
class Instruction(ContextValue):
    """The instruction, its length in tokens, and the examples shown with it (none for GEPA)."""

    text: str
    text_tokens: int = 0
    demonstrations: tuple[Demonstration, ...] = ()

    kind = "instruction"
    generator = GeneratorSpec(template="instructed", answer_format="json")

    @classmethod
    def measure(cls, text: str, *, count: TokenCounter, demonstrations: tuple[Demonstration, ...] = ()) -> Instruction:
        """Build an instruction with its length in tokens."""
        return cls(text=text, text_tokens=count(text), demonstrations=demonstrations)

    @property
    def tokens(self) -> int:
        """Text and examples."""
        return self.text_tokens + sum(demonstration.tokens for demonstration in self.demonstrations)

    @property
    def size(self) -> int:
        """One for the text, unless it is empty, and one for each example."""
        return bool(self.text) + len(self.demonstrations)

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the fields ``instruction`` and ``demonstrations``."""
        return {"instruction": self.text, "demonstrations": join_demonstrations(self.demonstrations)}

    def shrink(self) -> Instruction | None:
        """Return a version without the last quarter of the examples; the text is never cut."""
        examples = drop_last_quarter(self.demonstrations)
        return None if examples is None else replace(self, demonstrations=examples)


def first_instruction(arena: Arena) -> Instruction:
    """Return the task's own instruction as a context."""
    *_, user = arena.prompts.render(START, {})
    return Instruction.measure(user.content, count=arena.counter("generator"))
