"""ACE's Generator with an empty playbook: the baseline that separates the prompt from what is learnt."""

from __future__ import annotations

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.method import Arena
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base import BaseMethod


class EmptyPlaybook(BaseMethod[Playbook]):
    """Evaluates the prompt that ``method=ace`` starts with, as its ``mode.before=true`` does."""

    generator = GeneratorSpec(template="generator", reply="json")

    def start(self, arena: Arena) -> Playbook:
        """Return the empty playbook with the task's sections."""
        return Playbook.start(arena.sections)
