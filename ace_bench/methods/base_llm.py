"""The base methods: the task's default prompt (paper, section 4.2), or ACE's with an empty playbook; neither learns."""

from __future__ import annotations

from ace_bench.contexts.base import NoContext
from ace_bench.core.method import Arena
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base import BaseMethod
from ace_bench.playbook.playbook import Playbook


class BaseLlm(BaseMethod[NoContext]):
    """Evaluates the task's own prompt."""

    draws_from_seed = False
    generator = GeneratorSpec(template="base", answer_format="text")

    def start(self, arena: Arena) -> NoContext:
        """Return the empty context."""
        return NoContext()


class EmptyPlaybook(BaseMethod[Playbook]):
    """Evaluates the prompt that ``method=ace`` starts with, as its ``mode.before=true`` does."""

    draws_from_seed = False
    generator = GeneratorSpec(template="generator", answer_format="json")

    def start(self, arena: Arena) -> Playbook:
        """Return the empty playbook with the task's sections."""
        return Playbook.start(arena.sections)
