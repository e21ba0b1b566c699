"""How a step learns from its batch of rollouts: side by side, or one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.types import Rollout
from ace_bench.methods.ace.curator import Curator, Proposal, propose_strategies
from ace_bench.methods.ace.draft import Draft
from ace_bench.methods.ace.playbooks import AnyPlaybook
from ace_bench.methods.ace.reflector import Learn, ReflectionPlan, SampleReflection, reflect, without_reflector
from ace_bench.methods.ace.settings import AceSettings


@dataclass(frozen=True, kw_only=True)
class BatchLearner:
    """Reflects on the rollouts of a step and curates; the result is in ``draft``. ``curates``: not every step does."""

    settings: AceSettings
    draft: Draft
    curator: Curator
    plan: ReflectionPlan
    curates: bool

    def learn(self, rollouts: Sequence[Rollout]) -> Sequence[SampleReflection]:
        """Learn from all rollouts; returns the reflections in their order."""
        if self.settings.one_by_one:
            return [self._learn_from(rollout) for rollout in rollouts]
        return self._learn_side_by_side(rollouts)

    def _learn_side_by_side(self, rollouts: Sequence[Rollout]) -> Sequence[SampleReflection]:
        """Reflect in parallel under the playbook before the step, then apply tags and deltas in sample order."""
        before = self.draft.playbook
        batch = self.curator.arena.map(lambda rollout: self._reflect(before, rollout), rollouts)
        if not self.curates:
            for reflected in batch:
                self.draft.tag(reflected)
        elif self.settings.update == "rewrite":
            for reflected in batch:
                self.draft.tag(reflected)
                self._rewrite(reflected)
        else:
            self._add_deltas(batch)
        return batch

    def _add_deltas(self, batch: Sequence[SampleReflection]) -> None:
        """Propose the deltas of a batch in parallel, each against the playbook before the step and its own tags."""
        proposals = self.curator.arena.map(
            lambda reflected: self._propose(reflected, self.draft.tagged(reflected)), batch
        )
        for reflected, proposal in zip(batch, proposals, strict=True):
            self.draft.tag(reflected)
            self.draft.curate(reflected, proposal, self.settings.limits)

    def _learn_from(self, rollout: Rollout) -> SampleReflection:
        """Change the playbook between the rollouts of a sample, as the official code does."""

        def count_tags(this_round: SampleReflection) -> AnyPlaybook:
            self.draft.tag(this_round)
            if self.settings.curate == "attempt":
                self._curate(this_round)
            return self.draft.playbook

        reflected = self._reflect(self.draft.playbook, rollout, count_tags)
        if self.settings.curate == "step":
            self._curate(reflected)
        return reflected

    def _curate(self, reflected: SampleReflection) -> None:
        if not self.curates:
            return
        if self.settings.update == "rewrite":
            self._rewrite(reflected)
        else:
            self.draft.curate(reflected, self._propose(reflected, self.draft.playbook), self.settings.limits)

    def _propose(self, reflected: SampleReflection, playbook: AnyPlaybook) -> Proposal:
        if self.settings.reflector == "rules" and isinstance(playbook, Playbook):
            return propose_strategies(reflected, playbook)
        return self.curator.propose(reflected, playbook, self.settings.operations)

    def _rewrite(self, reflected: SampleReflection) -> None:
        """Rewrite the playbook; the next sample's rewriting replaces this one."""
        self.draft.replace(reflected, self.curator.rewrite(reflected, self.draft.playbook), self.settings.limits)

    def _reflect(self, playbook: AnyPlaybook, rollout: Rollout, learn: Learn | None = None) -> SampleReflection:
        if self.settings.reflector == "off":
            return without_reflector(rollout)
        return reflect(playbook, rollout, plan=self.plan, arena=self.curator.arena, learn=learn)
