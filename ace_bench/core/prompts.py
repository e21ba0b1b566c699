"""A prompt set, and the parts of a run that fill its templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from ace_bench.core.types import Message


class Prompts(Protocol):
    """A prompt set bound to a task: templates by role."""

    def render(self, role: str, fields: Mapping[str, Any]) -> tuple[Message, ...]:
        """Render a role's messages; an undefined field is an error."""
        ...

    @property
    def digest(self) -> str:
        """Checksum over all templates of the set."""
        ...

    def require(self, roles: Iterable[str]) -> None:
        """Raise ``ConfigError`` where a template is missing or cannot be used."""
        ...


@runtime_checkable
class Prompting(Protocol):
    """A part that asks by templates and says which fields it fills, so that a prompt set is checked before any call."""

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of each template; ``inputs`` are those of a sample, ``shown`` those of the context."""
        ...
