"""The input and the outcome of a mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ace_bench.core.backbones import CacheReporting
from ace_bench.core.context import Context
from ace_bench.core.errors import CallLost, ConfigError
from ace_bench.core.method import Method
from ace_bench.core.types import CacheCounters, Record, Sample, Stage
from ace_bench.core.workload import Span
from ace_bench.runners.arena import RunArena
from ace_bench.runners.progress import ProgressCounter
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import RolloutRecord


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One assembled experiment: the method, its arena, its folder and its seed."""

    method: Method[Any]
    arena: RunArena
    folder: RunFolder
    progress: ProgressCounter
    seed: int

    @contextmanager
    def clock(self, stage: Stage) -> Iterator[RunArena]:
        """Record the time and the prefix-cache counters of a stage; yields the stage's arena."""
        journal = self.folder.journal
        journal.begin(stage)
        before = self._counters()
        try:
            yield self.arena.at(stage)
        finally:
            for name, earlier in before.items():
                now = self._counters().get(name)
                if now is not None:
                    journal.add_cache(name, now.queries - earlier.queries, now.hits - earlier.hits)
            journal.end()

    def _counters(self) -> Mapping[str, CacheCounters]:
        servers = {
            backbone.name: backbone
            for backbone in self.arena.backbones.values()
            if isinstance(backbone, CacheReporting)
        }
        read = {name: server.cache_counters() for name, server in servers.items()}
        return {name: counters for name, counters in read.items() if counters is not None}

    @property
    def adapts(self) -> bool:
        """Whether the method changes its context."""
        return self.method.adaptation != "none"


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a mode: the tested context, and graded rollouts by split."""

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


class Mode(Protocol):
    """Offline, online or evaluate."""

    def reads(self, method: Method[Any]) -> tuple[str, ...]:
        """All splits that a run of the method may read; they are checked before anything is spent."""
        ...

    @property
    def splits(self) -> Mapping[Stage, str]:
        """The split that each stage works on."""
        ...

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """How much a run does, by its number of samples, for estimates."""
        ...

    def check(self, method: Method[Any]) -> None:
        """Raise ``ConfigError`` where the method cannot run in this mode; called before anything is spent."""
        ...

    def begin(self, experiment: Experiment) -> Context:
        """Return the method's initial context, without any call.

        Raises ``ConfigError`` or ``DataError`` where a file to start from cannot be used, or the method cannot work
        with the samples and labels.
        """
        ...

    def run(self, experiment: Experiment) -> RunOutcome:
        """Adapt and evaluate."""
        ...


def refuse_retries(method: Method[Any]) -> None:
    """Raise ``ConfigError`` for a method that only tries samples again."""
    if method.retries:
        raise ConfigError(
            f"{type(method).__name__} carries nothing from sample to sample: use mode=online, which tries each test "
            "sample again"
        )


def evaluate(experiment: Experiment, samples: Sequence[Sample], context: Context, phase: str) -> list[RolloutRecord]:
    """Roll out every sample once under a context, in parallel; records in the order of ``samples``.

    Rollouts of the same context on the same sample are shared with earlier evaluations of the run. Unanswered samples
    are repeated after all others, until they are answered or the run stops.
    """
    experiment.progress.begin(phase, len(samples))
    with experiment.clock(Stage.EVALUATE) as arena:

        def one(sample: Sample) -> RolloutRecord | None:
            replayed = arena.is_recorded(sample, context)
            try:
                (record,) = arena.records([arena.rollout(sample, context)])
            except CallLost:
                return None
            experiment.progress.advance(context, replayed=replayed)
            return record

        records: dict[str, RolloutRecord] = {}
        while left := [sample for sample in samples if sample.id not in records]:
            records.update((record.sample, record) for record in arena.map(one, left) if record is not None)
        return [records[sample.id] for sample in samples]
