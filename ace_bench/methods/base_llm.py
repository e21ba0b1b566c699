"""Base LLM (paper, section 4.2): the task's default prompt, without context or learning."""

from __future__ import annotations

from ace_bench.contexts.empty import NoContext
from ace_bench.core.arena import Arena
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base import BaseMethod


class BaseLlm(BaseMethod[NoContext]):
    """Evaluates the task's own prompt."""

    generator = GeneratorSpec(template="base", reply="text")

    def start(self, arena: Arena) -> NoContext:
        """Return the empty context."""
        return NoContext()
