"""A rehearsal before the run: a few samples with a stand-in backbone, to estimate the cost and show prompts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ace_bench.core.backbones import GENERATOR, JUDGE, Backbone, Priced
from ace_bench.core.method import Learning, Span, Workload, exactly
from ace_bench.core.scratch import scratch_folder
from ace_bench.core.types import Completion, Message, Record, Stage, Usage
from ace_bench.runners.budget import Budget
from ace_bench.runners.build import RunSpec, build_experiment
from ace_bench.runners.loop import Experiment, run_loop
from ace_bench.runners.mode import ModeWorkload
from ace_bench.runners.stopping import Stop
from ace_bench.store.call_log import Account, Ledger
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal

REHEARSED = 3
"""Samples of each split that are rehearsed."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Bounds of the cost of a run, and the first prompt of each role.

    ``low`` is without retries: each sample is right at once, optimisers repeat what is recorded, and a context that did
    not change is not evaluated again. ``high`` is with all retries that the settings allow, and a context that grows by
    as much a sample as in the rehearsal. A call takes
    the fewest or the most tokens that one of its role took in the rehearsal, where ``answered_by`` stood in for the
    backbones. Calls that ask again for an unreadable reply are in neither.
    """

    low: Account
    high: Account
    answered_by: str
    prompts: Mapping[str, Sequence[Message]] = field(default_factory=dict)


def rehearse(spec: RunSpec, stop: Stop | None = None) -> Estimate:
    """Run the spec on a few samples in a throwaway folder, at no cost, and scale up to all of them."""
    standins = {role: _StandIn(role, backbone, spec.rehearsal) for role, backbone in spec.backbones.items()}
    limits = {split: min(REHEARSED, limit or REHEARSED) for split, limit in spec.limits.items()}
    small = replace(spec, method=spec.rehearsed_method, backbones=standins, limits=limits, budget=Budget())
    with scratch_folder("plan") as scratch:
        folder = RunFolder(scratch)
        try:
            experiment = build_experiment(folder, small, stop or Stop(), ())
            whole = replace(experiment, arena=replace(experiment.arena, limits=spec.limits))
            work = spec.mode.workload(whole)
            learning = Learning(samples=work.learnt, steps=work.steps, split=spec.mode.learnt_split)
            needed = spec.method.workload(whole.arena, learning)
            if needed is not None and needed.rollouts.high == 0:
                # Fitting costs nothing, so the whole context is made, and tested with its real size.
                experiment = replace(experiment, arena=replace(experiment.arena, limits=_all_train(spec, limits)))
            run_loop(experiment, spec.mode)
            rollouts = folder.journal.rollouts.values()
            acts = any(record.attempt.ended is not None for record in rollouts)
            needed = spec.method.workload(whole.arena, replace(learning, acts=acts))
            tokens = _by_role(standins.values())
            projection = _Projection(spec=spec, rehearsed=experiment, work=work, needed=needed, tokens=tokens)
            low, high = projection.bounds()
        finally:
            folder.close()
    prompts = {role: prompt for standin in standins.values() for role, prompt in standin.first.items()}
    return Estimate(low=low, high=high, answered_by=spec.rehearsal.name, prompts=prompts)


def _all_train(spec: RunSpec, limits: Mapping[str, int | None]) -> Mapping[str, int | None]:
    return {**limits, "train": spec.limits.get("train")}


@dataclass(frozen=True)
class _Tokens:
    """Bounds of the tokens of a role's calls."""

    prompt: Span
    completion: Span


def _by_role(standins: Iterable[_StandIn]) -> Mapping[str, _Tokens]:
    counts: dict[str, list[tuple[int, int]]] = {}
    for standin in standins:
        for role, calls in standin.tokens.items():
            counts.setdefault(role, []).extend(calls)
    spans = {role: [Span(min(ends), max(ends)) for ends in zip(*calls, strict=True)] for role, calls in counts.items()}
    return {role: _Tokens(*bounds) for role, bounds in spans.items()}


@dataclass(frozen=True, kw_only=True)
class _Projection:
    """Scales what was rehearsed up to the whole run: ``work`` of the mode, ``needed`` by the method."""

    spec: RunSpec
    rehearsed: Experiment
    work: ModeWorkload
    needed: Workload | None
    tokens: Mapping[str, _Tokens]

    def bounds(self) -> tuple[Account, Account]:
        """Return the two ends."""
        low, high = Account(), Account()
        for stage in Stage:
            for role, calls in self._calls(stage).items():
                low += self._cheapest(role, math.floor(calls.low))
                high += self._dearest(role, math.ceil(calls.high), grown=self._grown(stage))
        return low, high

    def _calls(self, stage: Stage) -> Mapping[str, Span]:
        """Return the calls of each role in a stage."""
        if stage is Stage.EVALUATE:
            rollouts, others = self.work.evaluated, dict[str, Span]()
        elif self.needed is None:
            return self._in_proportion()
        else:
            rollouts = self.needed.rollouts + Span(0, self.work.repeated)
            others = dict(self.needed.roles) if self.work.learnt else {}
            rollouts = rollouts if self.work.learnt else exactly(0)
        if JUDGE in self._ledger.roles(stage):
            others[JUDGE] = Span(0, rollouts.high)  # equal answers to a sample are judged once
        return {GENERATOR: rollouts.times(self._calls_of_rollout(stage)), **others}

    def _in_proportion(self) -> Mapping[str, Span]:
        """Return the calls of adaptation, in proportion to the samples."""
        rehearsed = self.spec.mode.workload(self.rehearsed).learnt
        factor = exactly(self.work.learnt / rehearsed if rehearsed else 0)
        return {role: exactly(paid.calls).times(factor) for role, paid in self._ledger.roles(Stage.ADAPT).items()}

    def _calls_of_rollout(self, stage: Stage) -> Span:
        """Return the fewest and the most calls of a rehearsed rollout."""
        records = [*self._journal.rollouts.values()]
        counts = [record.calls for record in records if record.stage is stage] or [record.calls for record in records]
        return Span(min(counts), max(counts)) if counts else exactly(1)

    def _cheapest(self, role: str, calls: int) -> Account:
        tokens = self.tokens.get(role)
        return self._account(role, calls, (tokens.prompt.low, tokens.completion.low) if tokens else None)

    def _dearest(self, role: str, calls: int, grown: float) -> Account:
        tokens = self.tokens.get(role)
        if tokens is None:
            return self._account(role, calls, None)
        written = grown if self.needed and role in self.needed.writers else 0
        return self._account(role, calls, (tokens.prompt.high + grown, tokens.completion.high + written))

    def _account(self, role: str, calls: int, tokens: tuple[float, float] | None) -> Account:
        """Return the cost of calls of a role with so many prompt and completion tokens each, ``None``: unknown."""
        if not calls:
            return Account()
        if tokens is None:
            return Account(calls=calls, usage=Usage(cached=0))
        usage = Usage(prompt=round(calls * tokens[0]), completion=round(calls * tokens[1]), cached=0)
        backbone = self.spec.backbones.get(role) or self.spec.backbones[GENERATOR]
        dollars = backbone.dollars(usage) if isinstance(backbone, Priced) else None
        return Account(calls=calls, usage=replace(usage, usd=dollars))

    def _grown(self, stage: Stage) -> float:
        """Return by how many tokens a context outgrows the rehearsed one: at the end, or on average while adapting."""
        steps = self._journal.steps
        if self.spec.method.adaptation != "steps" or not steps:
            return 0.0
        learnt = sum(len(step.samples) for step in steps)
        begun, ended = self._tokens_before(), steps[-1].context_tokens
        growth = max(0.0, (ended - begun) / learnt) * max(0, self.work.learnt - learnt)
        lengths = [backbone.context_length for backbone in self.spec.backbones.values()]
        limits = [self.needed.context_tokens if self.needed else None, *lengths]
        room = [max(0, limit - ended) for limit in limits if limit is not None]
        return min([growth, *room]) / (2 if stage is Stage.ADAPT else 1)

    def _tokens_before(self) -> int:
        context = self.spec.method.start(self.rehearsed.arena)
        tokens: int = context.tokens
        return tokens

    @property
    def _journal(self) -> Journal:
        return self.rehearsed.folder.journal

    @property
    def _ledger(self) -> Ledger:
        return self.rehearsed.folder.calls.ledger


class _StandIn:
    """Replies in place of a real backbone, with the real one's token counts."""

    simulated = True
    takes_tools = True  # as the stand-ins do; whether the real one does is found out at its first call

    def __init__(self, role: str, real: Backbone, substitute: Backbone):
        self._substitute = substitute
        self._real = real
        self._role = role
        self.name = real.name
        self.identity: Record = real.identity
        self.context_length = real.context_length
        self.first: dict[str, Sequence[Message]] = {}
        self.tokens: dict[str, list[tuple[int, int]]] = {}

    def count(self, text: str) -> int:
        return self._real.count(text)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        if self._role in (role, GENERATOR):
            self.first.setdefault(role, messages)
        completion = self._substitute.complete(messages, role=role, session=session, schema=schema)
        prompt, reply = sum(self.count(message.content) for message in messages), self.count(completion.text)
        self.tokens.setdefault(role, []).append((prompt, reply))
        return replace(completion, usage=Usage(prompt=prompt, completion=reply, cached=0))
