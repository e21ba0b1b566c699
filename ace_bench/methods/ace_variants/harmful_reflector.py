"""ACE with a Reflector that misleads (table 17 of the paper): ``method.harmful_every=N``."""

from __future__ import annotations

from dataclasses import dataclass

from ace_bench.core.types import Step
from ace_bench.methods.ace import Reflector

_HARMFUL = "reflector_harmful"


@dataclass(frozen=True)
class HarmfulReflector(Reflector):
    """A Reflector that is asked to mislead in all rounds of every ``every``-th step."""

    every: int
    templates = (*Reflector.templates, _HARMFUL)

    def template(self, step: Step) -> str:
        """Return the prompt template of a step."""
        return _HARMFUL if (step.index + 1) % self.every == 0 else super().template(step)
