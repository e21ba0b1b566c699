"""A cheatsheet as a context: one text that Dynamic Cheatsheet rewrites as a whole (paper, section 4.2 and C.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.digest import digest_of
from ace_bench.core.errors import DataError
from ace_bench.core.typed import converted
from ace_bench.core.types import Record, Sample

EMPTY = "(empty)"


class Episode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An attempt to be retrieved later: its question, what came of it, and as much of the truth as was shown."""

    question: str
    output: str
    feedback: str = ""
    reference: str = ""

    @property
    def text(self) -> str:
        """The attempt as a prompt shows it."""
        truth = (("Feedback", self.feedback), ("Reference answer", self.reference))
        told = "".join(f"\n{label}: {text}" for label, text in truth if text)
        return f"Question: {self.question}\nOutput: {self.output}{told}"


@dataclass(frozen=True, kw_only=True)
class Cheatsheet:
    """The text, its length in tokens and, where a method looks up earlier attempts (DC-RS), these in their order."""

    text: str = ""
    text_tokens: int = 0
    episodes: tuple[Episode, ...] = ()

    kind = "cheatsheet"

    @classmethod
    def load(cls, record: Record) -> Cheatsheet:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        try:
            stored: _Stored = converted(record, _Stored)
        except msgspec.ValidationError as error:
            raise DataError(f"no cheatsheet: {error}") from error
        return cls(text=stored.text, text_tokens=stored.text_tokens, episodes=tuple(stored.episodes))

    @cached_property
    def digest(self) -> str:
        """Content address."""
        return digest_of(self.dump())

    @property
    def tokens(self) -> int:
        """Length of the text: attempts are no part of the generator's prompt."""
        return self.text_tokens

    @property
    def size(self) -> int:
        """Number of lines that are not blank."""
        return sum(1 for line in self.text.splitlines() if line.strip())

    def rewritten(self, text: str, *, count: TokenCounter) -> Cheatsheet:
        """Return it with another text."""
        return replace(self, text=text, text_tokens=count(text))

    def remembering(self, episode: Episode) -> Cheatsheet:
        """Return it with one more attempt."""
        return replace(self, episodes=(*self.episodes, episode))

    def render(self, sample: Sample) -> Mapping[str, str]:  # noqa: ARG002 - the same for every sample
        """Return the field ``cheatsheet``."""
        return {"cheatsheet": self.text or EMPTY}

    def dump(self) -> Record:
        """Return the whole value as a JSON object."""
        episodes = msgspec.to_builtins(self.episodes)
        return {"kind": self.kind, "text": self.text, "text_tokens": self.text_tokens, "episodes": episodes}

    def patch(self, earlier: Context) -> Record:
        """Return the lines that changed since ``earlier``; raises ``TypeError`` for another kind of context."""
        if not isinstance(earlier, Cheatsheet):
            raise TypeError(f"a cheatsheet has no patch against {type(earlier).__name__}")
        kept = len(earlier.episodes)
        if self.episodes[:kept] != earlier.episodes:
            raise ValueError("attempts are only ever added to a cheatsheet")
        added = msgspec.to_builtins(self.episodes[kept:])
        return {"lines": _changes(earlier.text, self.text), "text_tokens": self.text_tokens, "episodes": added}

    def patched(self, patch: Record) -> Cheatsheet:
        """Apply a patch made against this value; raises ``DataError``."""
        try:
            made: _Patch = converted(patch, _Patch)
        except msgspec.ValidationError as error:
            raise DataError(f"not a patch of a cheatsheet: {error}") from error
        text = _changed(self.text, made.lines)
        return Cheatsheet(text=text, text_tokens=made.text_tokens, episodes=(*self.episodes, *made.episodes))


class _Stored(msgspec.Struct):
    text: str
    text_tokens: int
    episodes: list[Episode] = []


class _Patch(msgspec.Struct, forbid_unknown_fields=True):
    lines: list[tuple[int, int, list[str]]]
    text_tokens: int
    episodes: list[Episode]


def _changes(before: str, after: str) -> list[tuple[int, int, list[str]]]:
    """Lines from the first number up to the second give way to others; the numbers are those of ``before``."""
    old, new = before.split("\n"), after.split("\n")
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    return [(i1, i2, new[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]


def _changed(before: str, changes: Sequence[tuple[int, int, list[str]]]) -> str:
    lines, limit = before.split("\n"), before.count("\n") + 1
    for start, end, new in reversed(changes):
        if not 0 <= start <= end <= limit:
            raise DataError(f"the patch was made against another cheatsheet: it changes lines {start} to {end}")
        lines[start:end] = new
        limit = start
    return "\n".join(lines)
