"""The experiment that the loop and the modes work with: its steps, and its tests of contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from ace_bench.core.backbones import CacheReporting
from ace_bench.core.context import Context
from ace_bench.core.errors import CallLost, StoreError
from ace_bench.core.method import ContextUpdate, Method
from ace_bench.core.task import headline_score
from ace_bench.core.types import CacheCounters, Record, Rollout, Sample, Stage, Step
from ace_bench.runners.arena import RunArena
from ace_bench.runners.progress import ProgressCounter
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal, RolloutRecord, StepRecord

TRAIN, VALIDATION, TEST = "train", "val", "test"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The samples of one step, in a ``scope`` of the arena.

    ``window`` holds the samples to attempt if they are more than the samples to learn from. With ``predicts`` the
    attempts are predictions and get a score. With ``prepares`` the method prepares the context for the attempts. It
    prepares for all samples of a window together, in its first step. With ``validates`` the context is validated after
    the step.
    """

    step: Step
    samples: Sequence[Sample]
    window: Sequence[Sample] = ()
    scope: str = ""
    predicts: bool = False
    prepares: bool = True
    validates: bool = False


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The score on the validation split of the context after some step."""

    step: int
    score: float
    context: Context

    def record(self) -> Record:
        """Return it for ``metrics.json``."""
        return {"step": self.step, "score": self.score, "context": self.context.digest}


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """The contexts of a run before its first call: the one it starts from, and the saved one that it tests, if any."""

    start: Context
    saved: Context | None = None


class StageClock:
    """Records the time of each stage, and what servers report of their prefix caches meanwhile."""

    def __init__(self, journal: Journal, servers: Mapping[str, CacheReporting]):
        self._journal = journal
        self._servers = servers
        self._stage: Stage | None = None
        self._before: Mapping[str, CacheCounters] = {}

    def __enter__(self) -> StageClock:
        return self

    def __exit__(self, *_: object) -> None:
        self.enter(None)

    def enter(self, stage: Stage | None) -> None:
        """End the current stage and begin ``stage``, unless it is the same."""
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
    """One assembled experiment: the method, the contexts it begins with, its arena, its folder and its seed.

    With ``repeats`` a sample is attempted anew each time the mode asks for it, even under the same context.
    """

    method: Method[Any]
    beginning: Beginning
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

    def take_step(self, context: Context, batch: Batch) -> tuple[Context, Sequence[Rollout]]:
        """Attempt a batch, learn from it and record the step; a recorded step is not learnt again.

        A step that loses a call starts over. Its other calls are replayed, so either one more of them is answered, or
        the count of unanswered calls grows until the run stops.
        """
        method, arena = self.method, self.begin_step(batch)
        learning, attempted = self.learning_arena(arena, batch), batch.window or batch.samples
        learnt = self.recorded_context(context, batch)
        if learnt is not None and not batch.predicts:
            return learnt, ()
        while True:
            try:
                prepared = ContextUpdate(context=context)
                if batch.prepares:
                    prepared = method.prepare(context, attempted, batch.step, arena)
                predicted: Sequence[Rollout] = arena.rollouts(attempted, prepared.context) if batch.predicts else ()
                if learnt is None:
                    if learning is arena and batch.predicts:
                        rollouts = predicted[: len(batch.samples)]
                    else:
                        rollouts = learning.rollouts(batch.samples, prepared.context)
                    update = method.update(prepared.context, rollouts, batch.step, learning)
                    update = replace(update, events=(*prepared.events, *update.events))
                    learnt = self.record_step(context, batch, update)
            except CallLost:
                arena.gateway.replay_all()
            else:
                return learnt, predicted

    def begin_step(self, batch: Batch) -> RunArena:
        """Return the arena of a step."""
        self.progress.enter("adapt", batch.step.total, done=batch.step.index)
        self.clock.enter(Stage.ADAPT)
        return self.arena.at(Stage.ADAPT, batch.scope)

    def learning_arena(self, arena: RunArena, batch: Batch) -> RunArena:
        """Return the arena that a step learns in: the arena of predictions, unless it ``repeats`` calls.

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

    def validate(self, context: Context, step: Step) -> Validation:
        """Score a context on the validation split."""
        samples = self.arena.samples(VALIDATION)
        name = f"step{step.index + 1}"
        records = self.test(samples, context, f"validate after step {step.index + 1}", name)
        score = headline_score(self.arena.task, [record.grade for record in records])
        return Validation(step=step.index + 1, score=score, context=context)

    def test(self, samples: Sequence[Sample], context: Context, phase: str, name: str) -> list[RolloutRecord]:
        """Roll out every sample once under a context, in parallel; return the graded rollouts in their order.

        Rollouts of the same context on the same sample are shared with earlier evaluations of the run. If the run
        ``repeats`` calls, they are shared only with the evaluation of this ``name``. Unanswered samples are repeated
        after all others, until they are answered or the run stops.
        """
        self.progress.enter(phase, len(samples))
        self.clock.enter(Stage.EVALUATE)
        arena = self.arena.at(Stage.EVALUATE, name if self.repeats else "")

        def attempt(sample: Sample) -> RolloutRecord | None:
            replayed = arena.is_recorded(sample, context)
            try:
                (record,) = arena.records([arena.rollout(sample, context)])
            except CallLost:
                return None
            self.progress.advance(context, replayed=replayed)
            return record

        records: dict[str, RolloutRecord] = {}
        while unanswered := [sample for sample in samples if sample.id not in records]:
            records.update((record.sample, record) for record in arena.map(attempt, unanswered) if record is not None)
        return [records[sample.id] for sample in samples]
