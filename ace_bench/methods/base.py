"""Base LLM (paper, section 4.2): the task's default prompt, no context, nothing learnt."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ace_bench.contexts.empty import NoContext
from ace_bench.core.arena import Arena
from ace_bench.core.context import Context
from ace_bench.core.types import GeneratorSpec


class Base:
    """Evaluates the task's own prompt."""

    generator = GeneratorSpec(template="base", reply="text")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def start(self, arena: Arena) -> Context:
        """Return the empty context."""
        del arena
        return NoContext()
