"""A prompt set bound to a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ace_bench.core.types import Message

RAW_REFLECTION = "raw_reflection"
"""A set whose ``generator`` template shows this field gets each reflection as the model wrote it, in all templates."""


class Prompts(Protocol):
    """A prompt set bound to a task: templates by role."""

    def render(self, role: str, fields: Mapping[str, Any]) -> tuple[Message, ...]:
        """Render a role's messages; an undefined field is an error."""
        ...

    def is_dialogue(self, role: str) -> bool:
        """Whether a template is a whole conversation, with worked examples of its own."""
        ...

    def uses(self, role: str, field: str) -> bool:
        """Whether a template, or one that it includes, shows a field."""
        ...

    @property
    def digest(self) -> str:
        """Checksum over all templates of the set."""
        ...

    def require(self, roles: Iterable[str]) -> None:
        """Raise ``ConfigError`` if a template is missing or cannot be used."""
        ...
