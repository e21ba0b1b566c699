"""A run on a few samples with a stand-in backbone, in a throwaway folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from ace_bench.core.context import Context
from ace_bench.core.method import Learning, Span, Workload
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.scratch import scratch_folder
from ace_bench.core.task import Conversational
from ace_bench.core.types import Message, Rollout, Sample, Stage
from ace_bench.runners.arena import RunArena
from ace_bench.runners.build import RunSpec, build_experiment
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.limits import Budget, Stop
from ace_bench.runners.loop import run_loop
from ace_bench.runners.mode import ModeWorkload
from ace_bench.runners.settings import BySplit
from ace_bench.runners.standin import StandIn
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal

REHEARSED = 8
"""Samples of each split that are rehearsed."""
REHEARSED_EPISODES = 3
"""The same where attempts are conversations with an environment, which take seconds."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A run that was run on a few samples; ``whole`` is the same experiment with all samples."""

    spec: RunSpec
    experiment: Experiment
    whole: Experiment
    standins: Sequence[StandIn]

    @classmethod
    def make(
        cls, spec: RunSpec, stop: Stop, stack: ExitStack, *, opposite: bool = False, lengthened: bool = False
    ) -> Rehearsal:
        """Rehearse in a folder that the stack removes.

        ``opposite`` shows the opposite of each verdict; ``lengthened`` replies are as long as they may be.
        """
        standins = {
            role: StandIn(role, backbone, spec.rehearsal, opposite=opposite, lengthened=lengthened)
            for role, backbone in spec.backbones.items()
        }
        most = REHEARSED_EPISODES if isinstance(spec.agent, Conversational) else REHEARSED
        limits = {split: min(most, limit or most) for split, limit in spec.limits.items()}
        small = replace(
            spec, method=spec.rehearsed_method, backbones=standins, limit=BySplit(**limits), budget=Budget()
        )
        folder = RunFolder(stack.enter_context(scratch_folder("plan")))
        stack.callback(folder.close)
        experiment = build_experiment(folder, small, stop, ())
        if opposite:
            experiment = replace(experiment, arena=_OppositeArena(**vars(experiment.arena)))
        whole = replace(experiment, arena=replace(experiment.arena, limits=spec.limits))
        rehearsal = cls(spec=spec, experiment=experiment, whole=whole, standins=[*standins.values()])
        needed = rehearsal.needed()
        if needed is not None and needed.rollouts.high == 0:
            # Fitting costs nothing, so the whole context is made, and tested with its real size.
            limits_of_fit = {**limits, "train": spec.limits["train"]}
            experiment = replace(experiment, arena=replace(experiment.arena, limits=limits_of_fit))
        run_loop(experiment, spec.mode)
        return replace(rehearsal, experiment=experiment)

    @property
    def work(self) -> ModeWorkload:
        """What the mode does in the whole run."""
        return self.spec.mode.workload(self.whole)

    @property
    def journal(self) -> Journal:
        """What happened."""
        return self.experiment.folder.journal

    @property
    def prompts(self) -> Mapping[str, Sequence[Message]]:
        """The first prompt of each role."""
        return {role: prompt for standin in self.standins for role, prompt in standin.first.items()}

    def needed(self) -> Workload | None:
        """Return what adaptation takes in the whole run; whether attempts act is known after the rehearsal."""
        acts = any(record.attempt.ended is not None for record in self.journal.rollouts.values())
        learning = Learning(
            samples=self.work.learnt, steps=self.work.steps, split=self.spec.mode.learnt_split, acts=acts
        )
        found, fits = self.spec.method.workload(self.whole.arena, learning), Span(1, self.work.fits)
        if found is None or fits.high == 1:
            return found
        roles = {role: calls.times(fits) for role, calls in found.roles.items()}
        return replace(found, rollouts=found.rollouts.times(fits), roles=roles)

    def roles(self, stage: Stage) -> Mapping[str, int]:
        """Return the calls of each role in a stage."""
        accounts = self.experiment.folder.calls.ledger.roles(stage)
        return {role: account.calls for role, account in accounts.items()}

    def mean_prompt(self, stage: Stage, role: str) -> float | None:
        """Return the mean tokens of a role's prompts in a stage, ``None`` without any."""
        found = self.experiment.folder.calls.ledger.roles(stage).get(role)
        return found.usage.prompt / found.calls if found and found.usage.prompt is not None else None

    def growth(self) -> tuple[float, int]:
        """Return by how many tokens the context grew for each sample learnt from, and its last size."""
        steps = self.journal.steps
        if not steps:
            return 0.0, 0
        begun, ended = self.spec.method.start(self.experiment.arena).tokens, steps[-1].context_tokens
        return max(0.0, (ended - begun) / sum(len(step.samples) for step in steps)), ended

    def longer(self) -> float:
        """Return by how many tokens samples are longer on average than the shortest one that was rehearsed."""
        found = 0.0
        for split in self.spec.mode.reads(self.spec.method):
            rehearsed, all_ = (
                [sum(map(estimate_tokens, sample.inputs.values())) for sample in one.arena.samples(split)]
                for one in (self.experiment, self.whole)
            )
            found = max(found, sum(all_) / max(1, len(all_)) - min(rehearsed, default=0))
        return found


class _OppositeArena(RunArena):
    """Shows a method the opposite of each verdict."""

    def rollout(self, sample: Sample, context: Context, **asked: Any) -> Rollout:
        rollout = super().rollout(sample, context, **asked)
        seen = rollout.feedback
        correct, score = (None if seen.correct is None else not seen.correct), (seen.score and 1 - seen.score)
        return replace(rollout, feedback=replace(seen, correct=correct, score=score))
