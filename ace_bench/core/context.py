"""The value that a method evolves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, Self, runtime_checkable

from ace_bench.core.types import Record, Sample


class Context(Protocol):
    """What a method evolves: an immutable value."""

    kind: ClassVar[str]
    """Names the class in dumps; each kind has one class."""

    @classmethod
    def load(cls, record: Record) -> Self:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        ...

    @property
    def digest(self) -> str:
        """Content address; equal digests render equally."""
        ...

    @property
    def tokens(self) -> int:
        """Size as a prompt sees it."""
        ...

    @property
    def size(self) -> int:
        """Number of items: bullets, demonstrations; 0 when empty."""
        ...

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the prompt fields this context fills for a sample."""
        ...

    def dump(self) -> Record:
        """Return the whole value as a JSON object with a ``kind``."""
        ...

    def patch(self, earlier: Self) -> Record:
        """Return what changed since ``earlier``, as small as the change itself."""
        ...

    def patched(self, patch: Record) -> Self:
        """Apply a ``patch`` made against this value."""
        ...


@runtime_checkable
class Reducible(Protocol):
    """What can give something up when a prompt is too long for the backbone: a context, a transcript."""

    def shrink(self) -> Self | None:
        """Return a smaller version without the least useful part; ``None`` when nothing is left to drop."""
        ...
