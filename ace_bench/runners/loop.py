"""The loop of every run: adapt a context step by step, validate it on the way, evaluate it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ace_bench.core.context import Context
from ace_bench.core.errors import CallLost
from ace_bench.core.method import LAST_TRIAL, ContextUpdate
from ace_bench.core.types import Rollout
from ace_bench.runners.experiment import Batch, Experiment, Mode, RunOutcome, Validation
from ace_bench.store.journal import Journal, RolloutRecord


def run_loop(experiment: Experiment, mode: Mode) -> RunOutcome:
    """Adapt and evaluate a context; calls, rollouts and steps that the run folder holds are replayed."""
    method, arena = experiment.method, experiment.arena
    start = context = mode.start(experiment)
    tested, batches = mode.tested(experiment), mode.batches(experiment)
    predicted: list[RolloutRecord] = []
    validations: list[Validation] = []
    if batches:  # saved now and not at the end, so that a stopped run has it, too
        experiment.folder.write_missing("contexts/initial.json", start.dump())
    with experiment.clock:
        phase = f"evaluate {mode.split}"
        before = experiment.evaluate(tested, start, f"{phase}, before") if mode.tests_start(method) else None
        for batch in batches:
            context, rollouts = take_step(experiment, context, batch)
            predicted += arena.records(rollouts if batch.predicts else ())
            if batch.validates:
                validations.append(experiment.validate(context, batch.step))
        name, chosen = mode.choose(experiment, context, validations)
        after = predicted or experiment.evaluate(tested, chosen, f"{phase}, after" if batches else phase)
    if predicted and method.retries:
        before, after = predicted, last_trials(experiment.folder.journal, predicted)
    return RunOutcome(
        split=mode.split,
        context=chosen,
        after=after,
        before=before,
        contexts={"initial": start, "final": context, name: chosen} if batches else {},
        validation=[one.record() for one in validations],
    )


def take_step(experiment: Experiment, context: Context, batch: Batch) -> tuple[Context, Sequence[Rollout]]:
    """Attempt a batch, learn from it and record the step; a recorded step is not learnt again.

    A step that loses a call starts over. Its other calls are replayed, so either one more of them is answered, or the
    count of unanswered calls grows until the run stops.
    """
    method, arena = experiment.method, experiment.begin_step(batch)
    learnt = experiment.recorded_context(context, batch)
    if learnt is not None and not batch.predicts:
        return learnt, ()
    while True:
        try:
            prepared = ContextUpdate(context=context)
            if batch.prepares:
                prepared = method.prepare(context, batch.attempted, batch.step, arena)
            rollouts: Sequence[Rollout] = arena.rollouts(batch.attempted, prepared.context)
            if learnt is None:
                update = method.update(prepared.context, rollouts[: len(batch.samples)], batch.step, arena)
                update = replace(update, events=(*prepared.events, *update.events))
                learnt = experiment.record_step(context, batch, update)
        except CallLost:
            arena.gateway.replay_all()
        else:
            return learnt, rollouts


def last_trials(journal: Journal, first: Sequence[RolloutRecord]) -> list[RolloutRecord]:
    """Return the trials that count in place of the first ones, in their order."""
    events = (event for step in journal.steps for event in step.events if event["event"] == LAST_TRIAL)
    last = {event["first"]: event["last"] for event in events}
    return [journal.rollouts[last.get(record.key, record.key)] for record in first]
