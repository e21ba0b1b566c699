"""The playbook during a step: votes and deltas are applied to it sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.contexts.playbook.apply import Applied, Limits, apply
from ace_bench.contexts.playbook.deltas import Operation
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record, Sample, Step
from ace_bench.methods.ace_parts.insight import Delta, Insight

VOTES_ONLY = Limits(kinds=("TAG",))
"""What the Reflector may do to a playbook, whatever the Curator may."""


class PlaybookEditor:
    """A playbook with what a step has done to it: ``touched`` bullets, and ``events`` for the journal."""

    def __init__(self, playbook: Playbook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def preview_votes(self, insight: Insight) -> Playbook:
        """Return the playbook with the Reflector's votes counted; the editor's own does not change."""
        return self._applied(insight.sample, insight.votes, VOTES_ONLY).playbook

    def count_votes(self, *insights: Insight) -> None:
        """Count the Reflector's votes, sample by sample."""
        for insight in insights:
            self._apply(insight.sample, insight.votes, VOTES_ONLY, insight.events)

    def apply_delta(self, insight: Insight, delta: Delta, limits: Limits) -> None:
        """Apply the Curator's operations for a sample."""
        self._apply(insight.sample, delta.operations, limits, delta.events)

    def remove_bullets(self) -> None:
        """Remove all bullets, for a playbook that is written anew."""
        self.playbook = self.playbook.with_bullets(())

    def _apply(self, sample: Sample, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        applied = self._applied(sample, operations, limits)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": sample.id, **event} for event in (*events, *applied.events())]

    def _applied(self, sample: Sample, operations: Sequence[Operation], limits: Limits) -> Applied:
        return apply(self.playbook, operations, step=self._step, source=sample.id, limits=limits, count=self._count)
