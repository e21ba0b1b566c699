"""The value that a method evolves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Protocol, Self, runtime_checkable

from ace_bench.core.types import Record, Sample


class Context(Protocol):
    """What a method evolves: an immutable value."""

    kind: ClassVar[str]
    """Name of the class in saved contexts; each kind has one class."""

    @classmethod
    def load(cls, record: Record) -> Self:
        """Restore a context from its ``dump``, exactly; raises ``DataError``."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content; contexts with equal digests render equally."""

    @property
    def tokens(self) -> int:
        """Size in a prompt, in tokens."""

    @property
    def size(self) -> int:
        """Number of items: bullets, demonstrations; 0 when empty."""

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the prompt fields that this context fills for a sample."""

    def dump(self) -> Record:
        """Return the whole value as a JSON object with a ``kind``."""

    def patch(self, earlier: Self) -> Record:
        """Return what changed since ``earlier``; its size follows the size of the change."""

    def patched(self, patch: Record) -> Self:
        """Apply a ``patch`` made against this value."""


@runtime_checkable
class Reducible(Protocol):
    """A context or transcript that can be shortened when a prompt is too long for the backbone."""

    def shrink(self) -> Self | None:
        """Return a version without the least useful part; ``None`` if nothing can be dropped."""


@runtime_checkable
class Citable(Protocol):
    """A context whose prompts show bullets with ids, which replies may name."""

    @property
    def bullet_ids(self) -> Collection[str]:
        """The ids that its prompts show."""


@runtime_checkable
class HasBullets(Protocol):
    """A context of bullets with ids, in any form, as readers, reports and other programs need it."""

    def official_text(self) -> str:
        """Return it in the text format of the authors' code, with counters."""

    def prompt_text(self) -> str:
        """Return it for a system prompt, without counters."""

    def excerpt(self, ids: Sequence[str]) -> str:
        """Show the bullets with the given ids, for a Reflector."""

    def bullet_changes(
        self, later: Sequence[Self], samples: Sequence[Sequence[str]]
    ) -> tuple[Sequence[Record], Sequence[Record]]:
        """Return the bullets, and what each later version changed: bullets that it ``set``, ids that it ``removed``.

        ``samples`` are the samples of each later version.
        """
