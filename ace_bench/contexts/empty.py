"""The empty context, which the base method evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ace_bench.contexts.base import ContextValue
from ace_bench.core.types import GeneratorSpec, Sample


@dataclass(frozen=True, kw_only=True)
class NoContext(ContextValue):
    """A context that fills no prompt field; all its instances are equal."""

    kind = "none"
    generator = GeneratorSpec(template="base", reply="text")

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return no fields."""
        return {}
