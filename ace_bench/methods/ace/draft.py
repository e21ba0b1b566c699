"""The playbook during a step: operations are applied to it sample by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ace_bench.contexts.playbook.apply import Limits, apply
from ace_bench.contexts.playbook.deltas import Operation, echo
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook_text.operations import DroppedOperations
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Record, Sample, Step
from ace_bench.methods.ace.curator import Proposal
from ace_bench.methods.ace.playbooks import AnyPlaybook
from ace_bench.methods.ace.reflector import TAGS_ONLY, SampleReflection

_IGNORED = "the authors' code does nothing but ADD"


class Draft:
    """A playbook with what a step has done to it: ``touched`` bullets, and ``events`` for the journal."""

    def __init__(self, playbook: AnyPlaybook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def tag(self, reflected: SampleReflection) -> None:
        """Count the Reflector's tags of a sample."""
        if isinstance(self.playbook, TextPlaybook):
            self.playbook = self._with_verdicts(self.playbook, reflected)
            self._note(reflected, reflected.events)
            return
        self._apply(reflected.rollout.sample, reflected.tags, TAGS_ONLY, reflected.events)

    def tagged(self, reflected: SampleReflection) -> AnyPlaybook:
        """Return the playbook with the Reflector's tags of a sample counted; the draft does not change."""
        if isinstance(self.playbook, TextPlaybook):
            return self._with_verdicts(self.playbook, reflected)
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
        if isinstance(self.playbook, TextPlaybook):
            self._add_to_text(self.playbook, reflected, proposal)
            return
        self._apply(reflected.rollout.sample, proposal.operations, limits, proposal.events)

    def replace(self, reflected: SampleReflection, proposal: Proposal, limits: Limits) -> None:
        """Put a rewritten playbook in place of the old one; an empty rewriting changes nothing."""
        if proposal.operations and isinstance(self.playbook, Playbook):
            self.playbook = self.playbook.with_bullets(())
        self.curate(reflected, proposal, limits)

    def _add_to_text(self, before: TextPlaybook, reflected: SampleReflection, proposal: Proposal) -> None:
        """Add bullets as the authors' code does; operations that it cannot apply are dropped together.

        Without operations their code drops the blanks around the text, without a reply it leaves the text as it is.
        """
        if proposal.listed is None:
            self._note(reflected, proposal.events)
            return
        try:
            self.playbook = before.with_bullets_added(proposal.listed, count=self._count)
        except DroppedOperations as error:
            dropped = {"event": "rejected", "operation": {"type": "all of the reply"}, "reason": str(error)}
            self._note(reflected, (*proposal.events, dropped))
            return
        ignored = [one for one in proposal.listed if one["type"] != "ADD"]
        new = (Counter(self.playbook.ids) - Counter(before.ids)).elements()
        events: tuple[Record, ...] = (
            *({"event": "accepted", "type": "ADD", "bullet": bullet} for bullet in new),
            *({"event": "rejected", "operation": echo(one), "reason": _IGNORED} for one in ignored),
        )
        self._note(reflected, (*proposal.events, *events))

    def _with_verdicts(self, text: TextPlaybook, reflected: SampleReflection) -> TextPlaybook:
        for of_round in reflected.verdicts:
            text = text.with_tags([*of_round], count=self._count)
        return text

    def _note(self, reflected: SampleReflection, events: Sequence[Record]) -> None:
        self.events += [{"sample": reflected.rollout.sample.id, **event} for event in events]

    def _apply(self, sample: Sample, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        assert isinstance(self.playbook, Playbook)  # the callers have handled the text
        applied = apply(self.playbook, operations, step=self._step, source=sample.id, limits=limits, count=self._count)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": sample.id, **event} for event in (*events, *applied.events())]
