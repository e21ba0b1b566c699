"""What the loop calls: a mode, and an experiment with its clock, its records and its evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ace_bench.core.backbones import CacheReporting
from ace_bench.core.context import Context
from ace_bench.core.errors import CallLost, ConfigError, StoreError
from ace_bench.core.method import ContextUpdate, Method
from ace_bench.core.types import CacheCounters, Record, Sample, Stage, Step
from ace_bench.core.workload import Span
from ace_bench.runners.arena import RunArena
from ace_bench.runners.progress import ProgressCounter
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal, RolloutRecord, StepRecord

TRAIN, VALIDATION, TEST = "train", "val", "test"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The samples of one step, in a ``scope`` of the arena.

    ``window`` holds the samples to attempt where these are more than the ones to learn from; with ``predicts`` the
    attempts are predictions, which are scored. ``prepares``: the method prepares the context for the attempts; samples
    of a window are prepared for together, in its first step. ``validates``: the context is validated after the step.
    """

    step: Step
    samples: Sequence[Sample]
    window: Sequence[Sample] = ()
    scope: str = ""
    predicts: bool = False
    prepares: bool = True
    validates: bool = False

    @property
    def attempted(self) -> Sequence[Sample]:
        """The samples to attempt, those to learn from first."""
        return self.window or self.samples


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The score of a context on the validation split, after so many steps."""

    step: int
    score: float
    context: Context

    def record(self) -> Record:
        """Return it for ``metrics.json``."""
        return {"step": self.step, "score": self.score, "context": self.context.digest}


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: the tested context, and graded rollouts of the tested split."""

    split: str
    context: Context
    after: Sequence[RolloutRecord]
    before: Sequence[RolloutRecord] | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)
    validation: Sequence[Record] = ()


@dataclass(frozen=True, kw_only=True)
class ModeWorkload:
    """How much a mode does, for estimates: samples learnt in steps, and rollouts of all evaluations.

    An evaluation of a context that did not change repeats recorded rollouts, which is the low end of ``evaluated``.
    ``repeated`` is the most samples that are rolled out once more before they are learnt from.
    """

    learnt: int
    steps: int
    evaluated: Span
    repeated: int = 0


@dataclass(frozen=True, kw_only=True)
class Mode:
    """Samples of ``learnt_split`` that the loop learns from, and those of ``split`` that it tests.

    ``before`` also tests the initial context.
    """

    before: bool
    learnt_split: str = field(init=False, default=TEST)
    split: str = field(init=False, default=TEST)

    def reads(self, method: Method[Any]) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """All splits that a run of the method may read; they are checked before anything is spent."""
        return (self.split,)

    def check(self, method: Method[Any]) -> None:
        """Raise ``ConfigError`` where the method cannot run in this mode; called before anything is spent."""

    def advise(self, experiment: Experiment) -> str | None:  # noqa: ARG002 - for subclasses
        """Return a sentence for the console where the settings and the number of samples do not fit together."""
        return None

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return how much a run does, by its number of samples, for estimates."""
        raise NotImplementedError

    def start(self, experiment: Experiment) -> Context:
        """Return the method's initial context, without any call.

        Raises ``ConfigError`` or ``DataError`` where a file to start from cannot be used, or the method cannot work
        with the samples and labels.
        """
        experiment.method.check(experiment.arena)
        start: Context = experiment.method.start(experiment.arena)
        return start

    def tests_start(self, method: Method[Any]) -> bool:
        """Whether the initial context is tested, too; last trials are compared with first ones instead."""
        return self.before and method.adaptation != "none" and not method.retries

    def tested(self, experiment: Experiment) -> Sequence[Sample]:
        """Return the tested samples in order."""
        return experiment.arena.samples(self.split)

    def batches(self, experiment: Experiment) -> Sequence[Batch]:  # noqa: ARG002 - for subclasses
        """Return the steps of adaptation; none for a method that does not learn."""
        return ()

    def choose(
        self,
        experiment: Experiment,  # noqa: ARG002 - for subclasses
        final: Context,
        validations: Sequence[Validation],  # noqa: ARG002
    ) -> tuple[str, Context]:
        """Return the context to test and its name: the last one."""
        return "final", final


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
    """One assembled experiment: the method, its arena, its folder and its seed."""

    method: Method[Any]
    arena: RunArena
    folder: RunFolder
    progress: ProgressCounter
    clock: StageClock
    seed: int

    @property
    def adapts(self) -> bool:
        """Whether the method changes its context."""
        return self.method.adaptation != "none"

    def begin_step(self, batch: Batch) -> RunArena:
        """Return the arena of a step."""
        self.progress.enter("adapt", batch.step.total, done=batch.step.index)
        self.clock.enter(Stage.ADAPT)
        return self.arena.at(Stage.ADAPT, batch.scope)

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
        task, samples = self.arena.task, self.arena.samples(VALIDATION)
        records = self.evaluate(samples, context, f"validate after step {step.index + 1}")
        score = task.score([record.grade for record in records])[task.headline]
        return Validation(step=step.index + 1, score=score, context=context)

    def evaluate(self, samples: Sequence[Sample], context: Context, phase: str) -> list[RolloutRecord]:
        """Roll out every sample once under a context, in parallel; records in the order of ``samples``.

        Rollouts of the same context on the same sample are shared with earlier evaluations of the run. Unanswered
        samples are repeated after all others, until they are answered or the run stops.
        """
        self.progress.enter(phase, len(samples))
        self.clock.enter(Stage.EVALUATE)
        arena = self.arena.at(Stage.EVALUATE)

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


def refuse_retries(method: Method[Any]) -> None:
    """Raise ``ConfigError`` for a method that only tries samples again."""
    if method.retries:
        raise ConfigError(
            f"{type(method).__name__} carries nothing from sample to sample: use mode=online, which tries each test "
            "sample again"
        )
