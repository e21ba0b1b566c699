"""The loop of every run: adapt a context step by step, validate it on the way, evaluate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ace_bench.contexts.loading import encode_context
from ace_bench.core.backbones import CacheReporting
from ace_bench.core.context import Context
from ace_bench.core.errors import CallLost, StoreError
from ace_bench.core.method import FINAL_TRIAL, RESTART, ContextUpdate, Method
from ace_bench.core.types import CacheCounters, Rollout, Sample, Stage, Step
from ace_bench.runners.arena import RunArena
from ace_bench.runners.mode import VALIDATION, Batch, Mode, RunOutcome, StepTest, Validation
from ace_bench.runners.progress import ProgressCounter
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal, RolloutRecord, StepRecord


def run_loop(experiment: Experiment, mode: Mode) -> RunOutcome:
    """Adapt and evaluate a context; calls, rollouts and steps that the run folder holds are replayed."""
    method, arena = experiment.method, experiment.arena
    start = context = mode.start(experiment)
    tested, batches = mode.tested(experiment), mode.batches(experiment)
    predicted: list[RolloutRecord] = []
    validations: list[Validation] = []
    if batches:  # saved now and not at the end, so that a stopped run has it, too
        experiment.folder.write_missing("contexts/initial.json", encode_context(start))
    with experiment.clock:
        phase = f"evaluate {mode.split}"
        before = experiment.evaluate(tested, start, f"{phase}, before", "before") if mode.tests_start(method) else None
        tests = [] if before is None else [StepTest(name="before", context=start, records=before)]
        for batch in batches:
            if batch.restarts:
                context = experiment.restart(context, start, batch)
                continue
            context, rollouts = take_step(experiment, context, batch)
            predicted += arena.records(rollouts)
            if batch.tests:
                records = experiment.evaluate(batch.tests, context, f"test after {batch.scope}", batch.scope)
                tests.append(StepTest(name=batch.scope, context=context, records=records))
            if batch.validates:
                validations.append(experiment.validate(context, batch.step))
        name, chosen = mode.choose(experiment, context, validations)
        after = predicted or experiment.evaluate(tested, chosen, f"{phase}, after" if batches else phase, "after")
    if predicted and method.scores_last_trial:
        before, after = predicted, last_trials(experiment.folder.journal, predicted)
    return RunOutcome(
        split=mode.split,
        context=chosen,
        after=after,
        before=before,
        contexts={"initial": start, "final": context, name: chosen} if batches else {},
        validation=[one.record() for one in validations],
        results=mode.results(experiment, tests or [StepTest(name="after", context=chosen, records=after)]),
    )


def take_step(experiment: Experiment, context: Context, batch: Batch) -> tuple[Context, Sequence[Rollout]]:
    """Attempt a batch, learn from it and record the step; a recorded step is not learnt again.

    A step that loses a call starts over. Its other calls are replayed, so either one more of them is answered, or the
    count of unanswered calls grows until the run stops.
    """
    method, arena = experiment.method, experiment.begin_step(batch)
    learning, attempted = experiment.learning_arena(arena, batch), batch.window or batch.samples
    learnt = experiment.recorded_context(context, batch)
    if learnt is not None and not batch.predicts:
        return learnt, ()
    while True:
        try:
            prepared = ContextUpdate(context=context)
            if batch.prepares:
                prepared = method.prepare(context, attempted, batch.step, arena)
            predicted: Sequence[Rollout] = arena.rollouts(attempted, prepared.context) if batch.predicts else ()
            if learnt is None:
                known = learning is arena and batch.predicts
                first = predicted[: len(batch.samples)] if known else learning.rollouts(batch.samples, prepared.context)
                update = method.update(prepared.context, first, batch.step, learning)
                update = replace(update, events=(*prepared.events, *update.events))
                learnt = experiment.record_step(context, batch, update)
        except CallLost:
            arena.gateway.replay_all()
        else:
            return learnt, predicted


def last_trials(journal: Journal, first: Sequence[RolloutRecord]) -> list[RolloutRecord]:
    """Return the trials that count in place of the first ones, in their order."""
    events = (event for step in journal.steps for event in step.events if event["event"] == FINAL_TRIAL)
    last = {event["first"]: event["last"] for event in events}
    return [journal.rollouts[last.get(record.key, record.key)] for record in first]


class StageClock:
    """Records the time of each stage, and what servers report of their prefix caches meanwhile."""

    def __init__(self, journal: Journal, servers: Mapping[str, CacheReporting]):
        self._journal = journal
        self._servers = servers
        self._stage: Stage | None = None
        self._before: Mapping[str, CacheCounters] = {}

    def __enter__(self) -> StageClock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.enter(None)

    def enter(self, stage: Stage | None) -> None:
        """End the current stage and begin another one, if it is another."""
        if stage is self._stage:
            return
        counters = self._counters()
        if self._stage is not None:
            for name in self._before.keys() & counters.keys():
                now, earlier = counters[name], self._before[name]
                self._journal.add_cache(name, now.queries - earlier.queries, now.hits - earlier.hits)
            self._journal.end()
        if stage is not None:
            self._journal.begin(stage)
        self._stage, self._before = stage, counters

    def _counters(self) -> Mapping[str, CacheCounters]:
        read = {name: server.cache_counters() for name, server in self._servers.items()}
        return {name: counters for name, counters in read.items() if counters is not None}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One assembled experiment: the method, its arena, its folder and its seed.

    ``repeats``: what was attempted under a context is attempted anew where the mode asks for it again.
    """

    method: Method[Any]
    arena: RunArena
    folder: RunFolder
    progress: ProgressCounter
    clock: StageClock
    seed: int
    repeats: bool = False

    @property
    def adapts(self) -> bool:
        """Whether the method changes its context."""
        return self.method.adaptation != "none"

    def begin_step(self, batch: Batch) -> RunArena:
        """Return the arena of a step."""
        self.progress.enter("adapt", batch.step.total, done=batch.step.index)
        self.clock.enter(Stage.ADAPT)
        arena = self.arena.at(Stage.ADAPT, batch.scope, samples=batch.window or batch.samples, turn=batch.turn)
        return arena if batch.part is None else replace(arena, part=batch.part)

    def learning_arena(self, arena: RunArena, batch: Batch) -> RunArena:
        """Return the arena of what a step learns from: that of predictions, unless it ``repeats`` calls.

        A method that is scored by its last trial goes on from its predictions.
        """
        streams = batch.predicts or not batch.prepares
        apart = self.repeats and streams and not self.method.scores_last_trial
        return arena.at(Stage.ADAPT, "/".join(filter(None, (batch.scope, "learn")))) if apart else arena

    def recorded_context(self, context: Context, batch: Batch) -> Context | None:
        """Return the context after a step that an earlier process recorded; raises ``StoreError``."""
        steps = self.folder.journal.steps
        if batch.step.index >= len(steps):
            return None
        record = steps[batch.step.index]
        after = context.patched(record.patch)
        if record.samples != tuple(sample.id for sample in batch.samples) or after.digest != record.digest:
            raise StoreError(
                f"step {batch.step.index} in {self.folder.path} does not match this command: the folder was changed, "
                "or written by another version; start again with resume=false"
            )
        self.progress.advance(after, replayed=True)
        return after

    def record_step(self, before: Context, batch: Batch, update: ContextUpdate[Context]) -> Context:
        """Record what a step learnt, and return the context after it."""
        after = update.context
        self.folder.journal.add_step(
            StepRecord(
                index=batch.step.index,
                epoch=batch.step.epoch,
                samples=tuple(sample.id for sample in batch.samples),
                patch=after.patch(before),
                digest=after.digest,
                context_tokens=after.tokens,
                context_size=after.size,
                events=update.events,
                at=datetime.now(UTC).replace(microsecond=0),
            )
        )
        self.progress.advance(after)
        return after

    def restart(self, context: Context, start: Context, batch: Batch) -> Context:
        """Record a step that goes back to the initial context, and return that."""
        self.begin_step(batch)
        recorded = self.recorded_context(context, batch)
        if recorded is not None:
            return recorded
        return self.record_step(context, batch, ContextUpdate(context=start, events=({"event": RESTART},)))

    def validate(self, context: Context, step: Step) -> Validation:
        """Score a context on the validation split."""
        task, samples = self.arena.task, self.arena.samples(VALIDATION)
        name = f"step{step.index + 1}"
        records = self.evaluate(samples, context, f"validate after step {step.index + 1}", name)
        score = task.score([record.grade for record in records])[task.headline]
        return Validation(step=step.index + 1, score=score, context=context)

    def evaluate(self, samples: Sequence[Sample], context: Context, phase: str, name: str) -> list[RolloutRecord]:
        """Roll out every sample once under a context, in parallel; records in the order of ``samples``.

        Rollouts of the same context on the same sample are shared with earlier evaluations of the run, unless it
        ``repeats`` calls: then only with the one of this ``name``. Unanswered samples are repeated after all others,
        until they are answered or the run stops.
        """
        self.progress.enter(phase, len(samples))
        self.clock.enter(Stage.EVALUATE)
        arena = self.arena.at(Stage.EVALUATE, name if self.repeats else "", samples=samples)

        def attempt(sample: Sample) -> RolloutRecord | None:
            replayed = arena.is_recorded(sample, context)
            try:
                (record,) = arena.records([arena.rollout(sample, context)])
            except CallLost:
                return None
            self.progress.advance(context, replayed=replayed)
            return record

        records: dict[str, RolloutRecord] = {}
        while left := [sample for sample in samples if sample.id not in records]:
            records.update((record.sample, record) for record in arena.map(attempt, left) if record is not None)
        return [records[sample.id] for sample in samples]
