"""Base LLM (paper, section 4.2): the task's default prompt, without context or learning."""

from __future__ import annotations

from ace_bench.contexts.empty import NoContext
from ace_bench.core.method import Arena
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base import BaseMethod


class BaseLlm(BaseMethod[NoContext]):
    """Evaluates the task's own prompt; with ``reasoning`` the model reasons in JSON before it answers, as in ACE.

    The template of ``reasoning`` is there for questions only: agents reason in any case.
    """

    def __init__(self, *, reasoning: bool) -> None:
        self.generator = (
            GeneratorSpec(template="base_reasoned", reply="json")
            if reasoning
            else GeneratorSpec(template="base", reply="text")
        )

    def start(self, arena: Arena) -> NoContext:
        """Return the empty context."""
        return NoContext()
