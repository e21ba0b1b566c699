"""A rehearsal before the run: a few samples with a stand-in backbone, to estimate the cost and show prompts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ace_bench.core.backbones import Backbone, Priced
from ace_bench.core.types import NO_USAGE, Completion, Message, Record, Stage, Usage
from ace_bench.runners.arena import GENERATOR
from ace_bench.runners.assemble import RunSpec
from ace_bench.runners.budget import Budget
from ace_bench.runners.build import build_experiment
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.stopping import Stop
from ace_bench.store.folder import RunFolder
from ace_bench.store.ledger import Account

REHEARSED = 3
"""Samples of each split that are rehearsed."""


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """The projected cost of the whole run, and the first prompt of each role.

    Prompts grow with the context, so ``usage.prompt`` and dollars are lower bounds.
    """

    calls: int
    usage: Usage
    prompts: dict[str, Sequence[Message]] = field(default_factory=dict)


def rehearse(plan: RunSpec, stop: Stop | None = None) -> Rehearsed:
    """Run the plan on a few samples in a throwaway folder, at no cost, and scale up to all of them."""
    standins = {role: _StandIn(role, backbone, plan.rehearsal) for role, backbone in plan.backbones.items()}
    limits = {split: min(REHEARSED, limit or REHEARSED) for split, limit in plan.limits.items()}
    small = replace(plan, backbones=standins, limits=limits, budget=Budget())
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch))
        try:
            experiment = build_experiment(folder, small, stop or Stop(), ())
            plan.mode.run(experiment)
            ledger = folder.calls.ledger
            calls, usage = 0, NO_USAGE
            for stage in Stage:
                factor = _factor(plan, experiment, stage)
                account = ledger.stage(stage)
                calls += round(account.calls * factor)
                usage += _scaled(account, factor)
        finally:
            folder.close()
    prompts = {role: prompt for standin in standins.values() for role, prompt in standin.first.items()}
    return Rehearsed(calls=calls, usage=usage, prompts=prompts)


def _factor(plan: RunSpec, experiment: Experiment, stage: Stage) -> float:
    """How many times more samples the run has than the rehearsal, for the split that a stage works on.

    Optimisers have a budget of rollouts instead, most of which repeat in a rehearsal.
    """
    if stage is Stage.ADAPT:
        expected = plan.method.expected_rollouts(replace(experiment.arena, limits=plan.limits))
        if expected is not None:
            rehearsed = sum(record.stage is stage for record in experiment.folder.journal.rollouts.values())
            return expected / max(1, rehearsed)
    split = plan.mode.splits[stage]
    available = len(plan.task.samples(split))
    total = min(available, plan.limits[split] or available)
    return total / min(total, REHEARSED)


def _scaled(account: Account, factor: float) -> Usage:
    usage = account.usage
    return Usage(
        prompt=None if usage.prompt is None else round(usage.prompt * factor),
        completion=None if usage.completion is None else round(usage.completion * factor),
        cached=0,
        usd=None if usage.usd is None else usage.usd * factor,
    )


class _StandIn:
    """Replies in place of a real backbone, with the real one's token counts and prices."""

    simulated = True

    def __init__(self, role: str, real: Backbone, substitute: Backbone):
        self._substitute = substitute
        self._real = real
        self._role = role
        self.name = real.name
        self.identity: Record = real.identity
        self.context_length = real.context_length
        self.first: dict[str, Sequence[Message]] = {}

    def count(self, text: str) -> int:
        return self._real.count(text)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        if self._role in (role, GENERATOR):
            self.first.setdefault(role, messages)
        completion = self._substitute.complete(messages, role=role, session=session, schema=schema)
        prompt = sum(self.count(message.content) for message in messages)
        usage = Usage(prompt=prompt, completion=self.count(completion.text), cached=0)
        dollars = self._real.dollars(usage) if isinstance(self._real, Priced) else None
        return replace(completion, usage=replace(usage, usd=dollars))
