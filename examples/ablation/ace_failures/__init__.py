"""An ablation of ACE: the Curator learns only from samples that the first attempt got wrong."""

from dataclasses import replace
from typing import Annotated, Any

from ace_bench.ace.ace import Ace, Curator
from ace_bench.ace.editing import Insight
from ace_bench.ace.replies import Delta
from ace_bench.ace.settings import AceSettings, make_ace
from ace_bench.core.method import Arena
from ace_bench.core.types import Step
from ace_bench.playbook.playbook import Playbook


class FailuresOnly(Curator):
    """Asks no model about a sample whose first attempt was right."""

    def propose(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> Delta:
        """Return the operations for one sample: none if its first attempt was right."""
        if insight.rollouts and insight.rollouts[0].feedback.correct:
            return Delta()
        return super().propose(playbook, insight, step, arena)


def make_ace_failures(**settings: Annotated[Any, AceSettings]) -> Ace:
    """Return ACE with its Curator replaced; ``settings`` are ACE's own."""
    ace = make_ace(**settings)
    return replace(ace, curator=FailuresOnly(**vars(ace.curator)))
