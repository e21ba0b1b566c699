"""Worked examples as a context: what ICL shows, and what MIPROv2 adds to an instruction (paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.digest import digest_of
from ace_bench.core.errors import DataError
from ace_bench.core.typed import converted
from ace_bench.core.types import Record, Sample

NO_DEMONSTRATIONS = "(none)"
_SEPARATOR = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """A question with its answer and, where it was seen, the reasoning between them; ``tokens`` is its length."""

    question: str
    answer: str
    reasoning: str = ""
    tokens: int = 0

    @classmethod
    def measured(cls, *, question: str, answer: str, count: TokenCounter, reasoning: str = "") -> Demonstration:
        """Build one with its length in tokens, the blank line after it included."""
        text = _text(question, reasoning, answer)
        return cls(question=question, answer=answer, reasoning=reasoning, tokens=count(text + _SEPARATOR))

    @property
    def text(self) -> str:
        """The example as a prompt shows it."""
        return _text(self.question, self.reasoning, self.answer)

    def record(self) -> Record:
        """Return the example as a JSON object."""
        return {name: value for name, value in vars(self).items() if value != ""}


def _text(question: str, reasoning: str, answer: str) -> str:
    thought = f"Reasoning: {reasoning}\n" if reasoning else ""
    return f"Question: {question}\n{thought}Answer: {answer}"


def shown(demonstrations: Iterable[Demonstration]) -> str:
    """Return examples as one text, in their order."""
    return _SEPARATOR.join(one.text for one in demonstrations) or NO_DEMONSTRATIONS


def fewer(demonstrations: Sequence[Demonstration]) -> tuple[Demonstration, ...] | None:
    """Return examples without the last quarter, so that the front of the prompt stays; ``None`` where none are left."""
    return tuple(demonstrations[: len(demonstrations) * 3 // 4]) if demonstrations else None


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """A demonstration as it stands in files."""

    question: str
    answer: str
    reasoning: str = ""
    tokens: int = 0

    def restored(self) -> Demonstration:
        """Return the value."""
        return Demonstration(**msgspec.structs.asdict(self))


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """What leads from one row of demonstrations to another: the first ``keep`` stay, ``add`` follow them."""

    keep: int
    add: list[Stored]

    def applied(self, before: Sequence[Demonstration]) -> tuple[Demonstration, ...]:
        """Return the changed row; raises ``DataError`` where it was made against another one."""
        if not 0 <= self.keep <= len(before):
            raise DataError(f"the patch was made against other demonstrations: it keeps {self.keep} of {len(before)}")
        return (*before[: self.keep], *(one.restored() for one in self.add))


def change(before: Sequence[Demonstration], after: Sequence[Demonstration]) -> Record:
    """Return what leads from one row to the other, as a ``Change`` in JSON."""
    pairs = zip(before, after, strict=False)
    keep = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(before), len(after)))
    return {"keep": keep, "add": [one.record() for one in after[keep:]]}


@dataclass(frozen=True, kw_only=True)
class Demonstrations:
    """Worked examples in the order in which a prompt shows them."""

    items: tuple[Demonstration, ...] = ()

    kind = "demonstrations"

    @classmethod
    def load(cls, record: Record) -> Demonstrations:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        try:
            stored: list[Stored] = converted(record.get("items"), list[Stored])
        except msgspec.ValidationError as error:
            raise DataError(f"no demonstrations: {error}") from error
        return cls(items=tuple(one.restored() for one in stored))

    @cached_property
    def digest(self) -> str:
        """Content address."""
        return digest_of(self.dump())

    @property
    def tokens(self) -> int:
        """Sum over the examples."""
        return sum(one.tokens for one in self.items)

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.items)

    def render(self, sample: Sample) -> Mapping[str, str]:  # noqa: ARG002 - the same for every sample
        """Return the field ``demonstrations``."""
        return {"demonstrations": shown(self.items)}

    def shrink(self) -> Demonstrations | None:
        """Return a version without the last quarter."""
        items = fewer(self.items)
        return None if items is None else Demonstrations(items=items)

    def dump(self) -> Record:
        """Return all examples as a JSON object."""
        return {"kind": self.kind, "items": [one.record() for one in self.items]}

    def patch(self, earlier: Context) -> Record:
        """Return what changed since ``earlier``; raises ``TypeError`` for another kind of context."""
        if not isinstance(earlier, Demonstrations):
            raise TypeError(f"demonstrations have no patch against {type(earlier).__name__}")
        return change(earlier.items, self.items)

    def patched(self, patch: Record) -> Demonstrations:
        """Apply a patch made against this value; raises ``DataError``."""
        try:
            made: Change = converted(patch, Change)
        except msgspec.ValidationError as error:
            raise DataError(f"not a patch of demonstrations: {error}") from error
        return Demonstrations(items=made.applied(self.items))
