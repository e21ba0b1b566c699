"""Adaptation as a sequence of journaled steps that can be cut anywhere and continued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ace_bench.core.context import Context
from ace_bench.core.errors import StoreError
from ace_bench.core.method import ContextUpdate, Optimiser, Preparing, StepLearner
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
    ready: ContextUpdate | None = None,
) -> Context:
    """Learn from a batch of samples, or repeat what the journal says of this step.

    ``ready`` is what the context was made into before the batch, where that was done already (``prepare``).
    A step cut short left its rollouts and calls behind; they are replayed, so nothing is paid for twice. Raises
    ``CallLost`` where a backbone left a call unanswered: then nothing was learnt, and the step is to be repeated.
    """
    learner = experiment.method
    if not isinstance(learner, StepLearner):
        raise TypeError(f"{type(learner).__name__} does not learn by steps")
    recorded = _replayed(experiment, context, samples, step)
    if recorded is None:
        ready = ready or prepare(experiment, arena, context, samples, step)
        rollouts: Sequence[Rollout] = arena.rollouts(samples, ready.context)
        update = learner.update(ready.context, rollouts, step, arena)
        update = replace(update, events=(*ready.events, *update.events))
        _record(experiment, context, samples, step, update)
        context = update.context
    else:
        context = recorded
    experiment.progress.advance(context, replayed=recorded is not None)
    return context


def prepare(
    experiment: Experiment, arena: RunArena, context: Context, samples: Sequence[Sample], step: Step
) -> ContextUpdate:
    """Make of a context what these samples are attempted under: the context itself, for most methods."""
    if isinstance(experiment.method, Preparing):
        return experiment.method.prepare(context, samples, step, arena)
    return ContextUpdate(context=context)


def fit(experiment: Experiment, context: Context) -> Context:
    """Optimise in one piece; a fit cut short is repeated over its recorded calls and rollouts."""
    optimiser = experiment.method
    if not isinstance(optimiser, Optimiser):
        raise TypeError(f"{type(optimiser).__name__} does not optimise offline")
    experiment.progress.begin("adapt", 1)
    step = Step(index=0, total=1, epoch=0)
    recorded = _replayed(experiment, context, (), step)
    if recorded is None:
        with experiment.clock(Stage.ADAPT) as arena:
            update = until_answered(lambda: optimiser.fit(context, arena), arena.gateway.replay_all)
            _record(experiment, context, (), step, update)
        recorded = update.context
    experiment.progress.advance(recorded)
    return recorded


def _replayed(experiment: Experiment, context: Context, samples: Sequence[Sample], step: Step) -> Context | None:
    steps = experiment.folder.journal.steps
    if step.index >= len(steps):
        return None
    record = steps[step.index]
    after = context.patched(record.patch)
    if record.samples != tuple(sample.id for sample in samples) or after.digest != record.digest:
        raise StoreError(
            f"step {step.index} in {experiment.folder.path} does not fit this command: the folder was changed, or "
            "written by another version; start anew with resume=false"
        )
    return after


def _record(
    experiment: Experiment, before: Context, samples: Sequence[Sample], step: Step, update: ContextUpdate
) -> None:
    if step.index == 0:  # a run that stops has a history, too
        experiment.folder.write_json("contexts/initial.json", before.dump())
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
        )
    )
