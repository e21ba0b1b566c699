"""A mode: the steps that the loop takes and the samples that it tests, and how much that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Method, Span
from ace_bench.core.types import Record, Sample, Step
from ace_bench.store.journal import RolloutRecord

if TYPE_CHECKING:
    from ace_bench.runners.loop import Experiment

TRAIN, VALIDATION, TEST = "train", "val", "test"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The samples of one step, in a ``scope`` of the arena.

    ``window`` holds the samples to attempt where these are more than the ones to learn from; with ``predicts`` the
    attempts are predictions, which are scored. ``prepares``: the method prepares the context for the attempts; samples
    of a window are prepared for together, in its first step. ``validates``: the context is validated after the step.
    ``turn`` counts the samples of the run before the first one. ``part`` names the samples that the method can list,
    ``None``: all. After the step the samples of ``tests`` are tested under its context, in a test called ``scope``. A
    step that ``restarts`` puts the initial context in place of the present one, and does nothing else.
    """

    step: Step
    samples: Sequence[Sample]
    window: Sequence[Sample] = ()
    scope: str = ""
    predicts: bool = False
    prepares: bool = True
    validates: bool = False
    turn: int = 0
    part: frozenset[str] | None = None
    tests: Sequence[Sample] = ()
    restarts: bool = False


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
class StepTest:
    """Graded rollouts under a context: of a batch's ``tests``, after its step, or of the test before or after all."""

    name: str
    context: Context
    records: Sequence[RolloutRecord]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: the tested context, graded rollouts of the tested split, and the mode's own ``results``."""

    split: str
    context: Context
    after: Sequence[RolloutRecord]
    before: Sequence[RolloutRecord] | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)
    validation: Sequence[Record] = ()
    results: Record = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ModeWorkload:
    """How much a mode does, for estimates: samples learnt in steps, and rollouts of all evaluations.

    An evaluation of a context that did not change repeats recorded rollouts, which is the low end of ``evaluated``.
    ``repeated`` is the most samples that are rolled out once more before they are learnt from. An optimiser runs up to
    ``fits`` times, each on a part of the samples.
    """

    learnt: int
    steps: int
    evaluated: Span
    repeated: int = 0
    fits: int = 1


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
        return self.before and method.adaptation != "none" and not method.scores_last_trial

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

    def results(self, experiment: Experiment, tests: Sequence[StepTest]) -> Record:  # noqa: ARG002 - for subclasses
        """Return what ``metrics.json`` holds of this mode alone, by key; the records of a run always give the same."""
        return {}


def refuse_retries(method: Method[Any]) -> None:
    """Raise ``ConfigError`` for a method that only tries samples again."""
    if method.scores_last_trial:
        raise ConfigError(
            "this method carries nothing from sample to sample: use mode=online, which tries each test sample again"
        )
