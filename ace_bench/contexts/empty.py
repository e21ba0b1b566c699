"""No context at all: what the base method evaluates and every other method is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ace_bench.core.context import Context
from ace_bench.core.digest import digest_of
from ace_bench.core.types import Record, Sample

_RECORD: Record = {"kind": "none"}


@dataclass(frozen=True)
class NoContext:
    """A context that fills no prompt field; all its instances are equal."""

    kind = "none"

    @classmethod
    def load(cls, record: Record) -> NoContext:  # noqa: ARG003 - the kind says it all
        """Restore what ``dump`` gave."""
        return cls()

    @property
    def digest(self) -> str:
        """The same for every instance."""
        return digest_of(_RECORD)

    @property
    def tokens(self) -> int:
        """Nothing takes no room."""
        return 0

    @property
    def size(self) -> int:
        """Nothing has no items."""
        return 0

    def render(self, sample: Sample) -> Mapping[str, str]:  # noqa: ARG002
        """Return no fields."""
        return {}

    def dump(self) -> Record:
        """Return the kind alone."""
        return _RECORD

    def patch(self, earlier: Context) -> Record:  # noqa: ARG002
        """Return the kind alone: there is nothing that could differ."""
        return _RECORD

    def patched(self, patch: Record) -> NoContext:  # noqa: ARG002
        """Return itself."""
        return self
