"""Adaptation as a sequence of journaled steps that can be interrupted anywhere and continued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ace_bench.core.context import Context
from ace_bench.core.errors import StoreError
from ace_bench.core.method import ContextUpdate
from ace_bench.core.types import Rollout, Sample, Stage, Step
from ace_bench.runners.arena import RunArena
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.unanswered import until_answered
from ace_bench.store.journal import StepRecord


def take_step(  # noqa: PLR0913 - all that a step is
    experiment: Experiment,
    arena: RunArena,
    context: Context,
    samples: Sequence[Sample],
    step: Step,
    *,
    ready: ContextUpdate[Context] | None = None,
) -> Context:
    """Learn from a batch of samples, or return the recorded context if the journal holds this step.

    ``ready`` is the result of ``prepare``, if it was called already. The rollouts and calls of an interrupted step
    are replayed, so nothing is paid for twice. Raises ``CallLost`` if a backbone left a call unanswered: nothing was
    learnt, and the caller must repeat the step.
    """
    recorded = _replayed(experiment, context, samples, step)
    if recorded is None:
        ready = ready or experiment.method.prepare(context, samples, step, arena)
        rollouts: Sequence[Rollout] = arena.rollouts(samples, ready.context)
        update = experiment.method.update(ready.context, rollouts, step, arena)
        update = replace(update, events=(*ready.events, *update.events))
        _record(experiment, context, samples, step, update)
        context = update.context
    else:
        context = recorded
    experiment.progress.advance(context, replayed=recorded is not None)
    return context


def fit(experiment: Experiment, context: Context) -> Context:
    """Optimise in one step; an interrupted fit is repeated with its recorded calls and rollouts."""
    experiment.progress.begin("adapt", 1)
    step = Step(index=0, total=1, epoch=0)
    recorded = _replayed(experiment, context, (), step)
    if recorded is None:
        with experiment.clock(Stage.ADAPT) as arena:
            update = until_answered(lambda: experiment.method.fit(context, arena), arena.gateway.replay_all)
            _record(experiment, context, (), step, update)
        recorded = update.context
    experiment.progress.advance(recorded)
    return recorded


def _replayed(experiment: Experiment, context: Context, samples: Sequence[Sample], step: Step) -> Context | None:
    steps = experiment.folder.journal.steps
    if step.index == 0:  # now and not at the end, so that a stopped run has it, too
        experiment.folder.write_missing("contexts/initial.json", context.dump())
    if step.index >= len(steps):
        return None
    record = steps[step.index]
    after = context.patched(record.patch)
    if record.samples != tuple(sample.id for sample in samples) or after.digest != record.digest:
        raise StoreError(
            f"step {step.index} in {experiment.folder.path} does not match this command: the folder was changed, or "
            "written by another version; start again with resume=false"
        )
    return after


def _record(
    experiment: Experiment, before: Context, samples: Sequence[Sample], step: Step, update: ContextUpdate[Context]
) -> None:
    experiment.folder.journal.add_step(
        StepRecord(
            index=step.index,
            epoch=step.epoch,
            samples=tuple(sample.id for sample in samples),
            patch=update.context.patch(before),
            digest=update.context.digest,
            context_tokens=update.context.tokens,
            context_size=update.context.size,
            events=update.events,
            at=datetime.now(UTC).replace(microsecond=0),
        )
    )
