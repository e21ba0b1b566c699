"""Adaptation as a sequence of journaled steps that can be cut anywhere and continued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ace_bench.core.errors import StoreError
from ace_bench.core.protocols import Context, Optimiser, Preparing, StepLearner, Update
from ace_bench.core.types import Rollout, Sample, Stage, Step
from ace_bench.runners.arena import RunArena
from ace_bench.runners.bench import Bench
from ace_bench.runners.unanswered import until_answered
from ace_bench.store.journal import StepRecord


def take_step(  # noqa: PLR0913 - all that a step is
    bench: Bench,
    arena: RunArena,
    context: Context,
    samples: Sequence[Sample],
    step: Step,
    *,
    ready: Update | None = None,
) -> Context:
    """Learn from a batch of samples, or repeat what the journal says of this step.

    ``ready`` is what the context was made into before the batch, where that was done already (``prepare``).
    A step cut short left its rollouts and calls behind; they are replayed, so nothing is paid for twice. Raises
    ``CallLost`` where a backbone left a call unanswered: then nothing was learnt, and the step is to be repeated.
    """
    learner = bench.method
    if not isinstance(learner, StepLearner):
        raise TypeError(f"{type(learner).__name__} does not learn by steps")
    recorded = _replayed(bench, context, samples, step)
    if recorded is None:
        ready = ready or prepare(bench, arena, context, samples, step)
        rollouts: Sequence[Rollout] = arena.rollouts(samples, ready.context)
        update = learner.update(ready.context, rollouts, step, arena)
        update = replace(update, events=(*ready.events, *update.events))
        _record(bench, context, samples, step, update)
        context = update.context
    else:
        context = recorded
    bench.meter.advance(context, replayed=recorded is not None)
    return context


def prepare(bench: Bench, arena: RunArena, context: Context, samples: Sequence[Sample], step: Step) -> Update:
    """Make of a context what these samples are attempted under: the context itself, for most methods."""
    if isinstance(bench.method, Preparing):
        return bench.method.prepare(context, samples, step, arena)
    return Update(context=context)


def fit(bench: Bench, context: Context) -> Context:
    """Optimise in one piece; a fit cut short is repeated over its recorded calls and rollouts."""
    optimiser = bench.method
    if not isinstance(optimiser, Optimiser):
        raise TypeError(f"{type(optimiser).__name__} does not optimise offline")
    bench.meter.begin("adapt", 1)
    step = Step(index=0, total=1, epoch=0)
    recorded = _replayed(bench, context, (), step)
    if recorded is None:
        with bench.clock(Stage.ADAPT) as arena:
            update = until_answered(lambda: optimiser.fit(context, arena), arena.door.replay_all)
            _record(bench, context, (), step, update)
        recorded = update.context
    bench.meter.advance(recorded)
    return recorded


def _replayed(bench: Bench, context: Context, samples: Sequence[Sample], step: Step) -> Context | None:
    steps = bench.folder.journal.steps
    if step.index >= len(steps):
        return None
    record = steps[step.index]
    after = context.patched(record.patch)
    if record.samples != tuple(sample.id for sample in samples) or after.digest != record.digest:
        raise StoreError(
            f"step {step.index} in {bench.folder.path} does not fit this command: the folder was changed, or written "
            "by another version; start anew with resume=false"
        )
    return after


def _record(bench: Bench, before: Context, samples: Sequence[Sample], step: Step, update: Update) -> None:
    if step.index == 0:  # a run that stops has a history, too
        bench.folder.write_json("contexts/initial.json", before.dump())
    bench.folder.journal.add_step(
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
