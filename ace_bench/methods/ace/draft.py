"""The playbook during a step: operations are applied to it sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.contexts.playbook.apply import Limits, apply
from ace_bench.contexts.playbook.deltas import Operation
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record, Sample, Step
from ace_bench.methods.ace.curator import Proposal
from ace_bench.methods.ace.reflector import TAGS_ONLY, SampleReflection


class Draft:
    """A playbook with what a step has done to it: ``touched`` bullets, and ``events`` for the journal."""

    def __init__(self, playbook: Playbook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def tag(self, reflected: SampleReflection) -> None:
        """Count the Reflector's tags of a sample."""
        self._apply(reflected.rollout.sample, reflected.tags, TAGS_ONLY, reflected.events)

    def tagged(self, reflected: SampleReflection) -> Playbook:
        """Return the playbook with the Reflector's tags of a sample counted; the draft does not change."""
        applied = apply(
            self.playbook,
            reflected.tags,
            step=self._step,
            source=reflected.rollout.sample.id,
            limits=TAGS_ONLY,
            count=self._count,
        )
        return applied.playbook

    def curate(self, reflected: SampleReflection, proposal: Proposal, limits: Limits) -> None:
        """Apply the Curator's operations for a sample."""
        self._apply(reflected.rollout.sample, proposal.operations, limits, proposal.events)

    def replace(self, reflected: SampleReflection, proposal: Proposal, limits: Limits) -> None:
        """Put a rewritten playbook in place of the old one; an empty rewriting changes nothing."""
        if proposal.operations:
            self.playbook = self.playbook.with_bullets(())
        self.curate(reflected, proposal, limits)

    def _apply(self, sample: Sample, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        applied = apply(self.playbook, operations, step=self._step, source=sample.id, limits=limits, count=self._count)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": sample.id, **event} for event in (*events, *applied.events())]
