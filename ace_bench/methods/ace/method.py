"""ACE as a step learner: generate, reflect, curate, apply, refine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from ace_bench.contexts.load import load_kind
from ace_bench.contexts.playbook.apply import Limits, apply
from ace_bench.contexts.playbook.deltas import Operation
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.arena import Arena
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.method import ContextUpdate
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.methods.ace import curator, reflector
from ace_bench.methods.ace.curator import Curator, Proposal
from ace_bench.methods.ace.reflector import (
    HARMFUL,
    TAGS_ONLY,
    ReflectionPlan,
    SampleReflection,
    reflect,
    without_reflector,
)
from ace_bench.methods.ace.reflector import ROLE as REFLECTOR
from ace_bench.methods.ace.settings import AceSettings
from ace_bench.methods.base import BaseMethod


class Ace(BaseMethod[Playbook]):
    """The paper's method with its ablation switches (``AceSettings``)."""

    generator = GeneratorSpec(template="generator", reply="json")

    def __init__(self, **settings: Annotated[Any, AceSettings]):
        self._settings = AceSettings(**settings)

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles in use under these settings, and the templates each is asked with."""
        return self._settings.roles

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the templates in ``roles``."""
        known = {
            **dict.fromkeys((REFLECTOR, HARMFUL), inputs | shown | reflector.FIELDS),
            "curator": inputs | shown | curator.FIELDS | {"operations"},
            "rewriter": inputs | shown | curator.FIELDS,
            "merger": frozenset(("bullets",)),
        }
        return {name: known[name] for templates in self.roles.values() for name in templates}

    def start(self, arena: Arena) -> Playbook:
        """Return the initial playbook, or an empty one with the task's sections."""
        self._settings.refiner.prepare()
        self._settings.retrieval.prepare()
        initial = self._settings.initial
        if initial is None:
            return Playbook.start(arena.sections)
        return load_kind(Playbook, initial, arena=arena, reader="ACE")

    def select(self, context: Playbook, sample: Sample) -> Playbook:
        """Return the playbook with the bullets that matter for a sample, all of them where retrieval is off."""
        return self._settings.retrieval.select(context, sample.inputs["question"])

    def update(
        self, context: Playbook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Playbook]:
        """Reflect on a batch in parallel, apply its deltas in sample order, refine once (paper, 3.1 and 3.2)."""
        settings = self._settings
        count = arena.counter("generator")
        batch = arena.map(lambda rollout: self._reflect(context, rollout, step, arena), rollouts)
        draft = _Draft(context, step=step, count=count)
        role = Curator(
            arena=arena, step=step, token_budget=settings.refiner.max_tokens, window=settings.reflection_window
        )
        if (step.index + 1) % settings.curator_every:
            for reflected in batch:
                draft.tag(reflected)
        elif settings.update == "rewrite":
            self._rewrite(draft, batch, role)
        else:
            self._add_deltas(draft, context, batch, role)
        refined = settings.refiner.refine(
            draft.playbook,
            draft.touched,
            step=step.index,
            count=count,
            word=role.wording(rollouts[0].key) if settings.merge_wording == "curator" else None,
        )
        playbook = self._with_recent(refined.playbook, batch)
        return ContextUpdate(context=playbook, events=(*draft.events, *refined.events))

    def _add_deltas(self, draft: _Draft, playbook: Playbook, batch: Sequence[SampleReflection], role: Curator) -> None:
        """Propose the deltas of a batch in parallel, all against the playbook before the step."""
        kinds = tuple(self._settings.operations)
        proposals = role.arena.map(lambda reflected: role.propose(reflected, playbook, kinds), batch)
        for reflected, proposal in zip(batch, proposals, strict=True):
            draft.tag(reflected)
            draft.add(reflected, proposal.operations, self._settings.limits, proposal.events)

    def _rewrite(self, draft: _Draft, batch: Sequence[SampleReflection], role: Curator) -> None:
        """Rewrite the playbook sample after sample: each rewriting replaces the one before it."""
        for reflected in batch:
            draft.tag(reflected)
            draft.replace(reflected, role.rewrite(reflected, draft.playbook), self._settings.limits)

    def _with_recent(self, playbook: Playbook, batch: Sequence[SampleReflection]) -> Playbook:
        """Keep the reflections of this step that the Curator is shown in later steps."""
        latest = (reflected.reflections[-1] for reflected in batch if reflected.reflections)
        recent = (*playbook.recent, *latest)
        recent = recent[max(0, len(recent) - self._settings.reflection_window + 1) :]
        return playbook if recent == playbook.recent else replace(playbook, recent=recent)

    def _reflect(self, playbook: Playbook, rollout: Rollout, step: Step, arena: Arena) -> SampleReflection:
        settings = self._settings
        if settings.reflector == "off":
            return without_reflector(rollout)
        harmful = settings.harmful_every is not None and (step.index + 1) % settings.harmful_every == 0
        plan = ReflectionPlan(
            rounds=settings.max_reflection_rounds,
            window=settings.reflection_window,
            template=HARMFUL if harmful else REFLECTOR,
        )
        return reflect(playbook, rollout, plan=plan, arena=arena)


class _Draft:
    """The playbook during a step: the operations of a batch are applied to it sample by sample."""

    def __init__(self, playbook: Playbook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def tag(self, reflected: SampleReflection) -> None:
        """Count the Reflector's tags of a sample."""
        self.add(reflected, reflected.tags, TAGS_ONLY, reflected.events)

    def add(
        self, reflected: SampleReflection, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]
    ) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        source = reflected.rollout.sample.id
        applied = apply(self.playbook, operations, step=self._step, source=source, limits=limits, count=self._count)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": source, **event} for event in (*events, *applied.events())]

    def replace(self, reflected: SampleReflection, proposal: Proposal, limits: Limits) -> None:
        """Put a rewritten playbook in place of the old one; an empty rewriting changes nothing."""
        if proposal.operations:
            self.playbook = self.playbook.with_bullets(())
        self.add(reflected, proposal.operations, limits, proposal.events)
