"""An instruction as a context: what GEPA and MIPROv2 write, MIPROv2 with worked examples (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from ace_bench.contexts.demonstrations import Change, Demonstration, Stored, change, fewer, shown
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.digest import digest_of
from ace_bench.core.errors import DataError
from ace_bench.core.typed import converted
from ace_bench.core.types import Record, Sample


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """The text a model is told to follow, its length in tokens, and examples shown with it (none for GEPA)."""

    text: str
    text_tokens: int = 0
    demonstrations: tuple[Demonstration, ...] = ()

    kind = "instruction"

    @classmethod
    def measured(cls, text: str, *, count: TokenCounter, demonstrations: tuple[Demonstration, ...] = ()) -> Instruction:
        """Build one with its length in tokens."""
        return cls(text=text, text_tokens=count(text), demonstrations=demonstrations)

    @classmethod
    def load(cls, record: Record) -> Instruction:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        try:
            stored: _Stored = converted(record, _Stored)
        except msgspec.ValidationError as error:
            raise DataError(f"not an instruction: {error}") from error
        examples = tuple(one.restored() for one in stored.demonstrations)
        return cls(text=stored.text, text_tokens=stored.text_tokens, demonstrations=examples)

    @cached_property
    def digest(self) -> str:
        """Content address."""
        return digest_of(self.dump())

    @property
    def tokens(self) -> int:
        """Text and examples."""
        return self.text_tokens + sum(one.tokens for one in self.demonstrations)

    @property
    def size(self) -> int:
        """One for the text, unless it is empty, and one for each example."""
        return bool(self.text) + len(self.demonstrations)

    def render(self, sample: Sample) -> Mapping[str, str]:  # noqa: ARG002 - the same for every sample
        """Return the fields ``instruction`` and ``demonstrations``."""
        return {"instruction": self.text, "demonstrations": shown(self.demonstrations)}

    def shrink(self) -> Instruction | None:
        """Return a version without the last quarter of the examples: the text is never cut."""
        examples = fewer(self.demonstrations)
        return None if examples is None else replace(self, demonstrations=examples)

    def dump(self) -> Record:
        """Return the whole value as a JSON object."""
        examples = [one.record() for one in self.demonstrations]
        return {"kind": self.kind, "text": self.text, "text_tokens": self.text_tokens, "demonstrations": examples}

    def patch(self, earlier: Context) -> Record:
        """Return what changed since ``earlier``; raises ``TypeError`` for another kind of context."""
        if not isinstance(earlier, Instruction):
            raise TypeError(f"an instruction has no patch against {type(earlier).__name__}")
        same = (self.text, self.text_tokens) == (earlier.text, earlier.text_tokens)
        text = {} if same else {"text": self.text, "text_tokens": self.text_tokens}
        return {**text, "demonstrations": change(earlier.demonstrations, self.demonstrations)}

    def patched(self, patch: Record) -> Instruction:
        """Apply a patch made against this value; raises ``DataError``."""
        try:
            made: _Patch = converted(patch, _Patch)
        except msgspec.ValidationError as error:
            raise DataError(f"not a patch of an instruction: {error}") from error
        return Instruction(
            text=self.text if made.text is None else made.text,
            text_tokens=self.text_tokens if made.text is None else made.text_tokens,
            demonstrations=made.demonstrations.applied(self.demonstrations),
        )


class _Stored(msgspec.Struct):
    text: str
    demonstrations: list[Stored]
    text_tokens: int = 0


class _Patch(msgspec.Struct, forbid_unknown_fields=True):
    demonstrations: Change
    text: str | None = None
    text_tokens: int = 0
