"""What the middleware remembers, as a context: the package's own entries, without the times it stamps on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from ace_bench.core.context import Context
from ace_bench.core.digest import digest_of
from ace_bench.core.errors import DataError
from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.typed import converted
from ace_bench.core.types import Record, Sample


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One observation, in the package's fields."""

    category: str
    content: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Observations:
    """All entries, the oldest first; a prompt shows the last ``shown``, as the package writes them."""

    shown: int
    entries: tuple[Entry, ...] = ()

    kind = "heuristic"

    @classmethod
    def load(cls, record: Record) -> Observations:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        try:
            stored: _Stored = converted(record, _Stored)
        except msgspec.ValidationError as error:
            raise DataError(f"no observations: {error}") from error
        return cls(shown=stored.shown, entries=tuple(stored.entries))

    @cached_property
    def digest(self) -> str:
        """Content address."""
        return digest_of(self.dump())

    @cached_property
    def tokens(self) -> int:
        """Estimated length of what a prompt shows."""
        return estimate_tokens(self._text) if self.entries else 0

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.entries)

    def state(self) -> dict[str, Any]:
        """The entries as the package keeps them in an agent's state."""
        return {"entries": [msgspec.to_builtins(entry) for entry in self.entries]}

    def with_state(self, state: Mapping[str, Any]) -> Observations:
        """Return the entries of an agent's state."""
        kept = [Entry(**{name: raw[name] for name in Entry.__struct_fields__}) for raw in state["entries"]]
        return Observations(shown=self.shown, entries=tuple(kept))

    def render(self, sample: Sample) -> Mapping[str, str]:  # noqa: ARG002 - the same for every sample
        """Return the field ``observations``: the package's instruction and its playbook."""
        return {"observations": self._text}

    @cached_property
    def _text(self) -> str:
        if not self.entries:
            return ""
        from agent_episodic_memory import Playbook
        from agent_episodic_memory.middleware import PLAYBOOK_INSTRUCTION

        return f"{PLAYBOOK_INSTRUCTION}\n\n{Playbook.from_dict(self.state()).render(max_entries=self.shown)}"

    def dump(self) -> Record:
        """Return the whole value as a JSON object."""
        return {"kind": self.kind, "shown": self.shown, **self.state()}

    def patch(self, earlier: Context) -> Record:
        """Return the entries added since ``earlier``: none ever goes; raises ``TypeError`` for another kind."""
        if not isinstance(earlier, Observations):
            raise TypeError(f"observations have no patch against {type(earlier).__name__}")
        return {"added": self.state()["entries"][earlier.size :]}

    def patched(self, patch: Record) -> Observations:
        """Apply a patch made against this value; raises ``DataError``."""
        try:
            made: _Patch = converted(patch, _Patch)
        except msgspec.ValidationError as error:
            raise DataError(f"not a patch of observations: {error}") from error
        return Observations(shown=self.shown, entries=(*self.entries, *made.added))


class _Stored(msgspec.Struct):
    shown: int
    entries: list[Entry]


class _Patch(msgspec.Struct, forbid_unknown_fields=True):
    added: list[Entry]
