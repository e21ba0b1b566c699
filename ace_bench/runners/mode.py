"""A mode: the steps that the loop takes and the samples that it tests, and how much that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, Method, Span
from ace_bench.core.types import Sample
from ace_bench.runners.experiment import TEST, Batch, Beginning, Experiment, Validation


class ModeWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """How much a mode does, for estimates: samples learnt in steps, and rollouts of all evaluations.

    An evaluation of a context that did not change repeats recorded rollouts, which is the low end of ``evaluated``.
    ``repeated`` is the most samples that are rolled out once more before the step.
    """

    learnt: int
    steps: int
    evaluated: Span
    repeated: int = 0


@dataclass(frozen=True, kw_only=True)
class Mode:
    """The loop learns from samples of ``learnt_split`` and tests samples of ``split``.

    ``before`` also tests the initial context.
    """

    before: bool
    learnt_split: str = field(init=False, default=TEST)
    split: str = field(init=False, default=TEST)

    def reads(self, method: Method[Any]) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """All splits that a run of the method may read; they are checked before anything is spent."""
        return (self.split,)

    def draws_order(self, method: Method[Any]) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the seed changes the order in which the method gets samples, which changes what it learns.

        Only what the class of a mode itself says is believed.
        """
        return True

    def check(self, method: Method[Any]) -> None:
        """Raise ``ConfigError`` if the method cannot run in this mode; called before anything is spent."""

    def advise(self, experiment: Experiment) -> str | None:  # noqa: ARG002 - for subclasses
        """Return a sentence for the console where the settings and the number of samples do not fit together."""
        return None

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return how much a run does, by its number of samples, for estimates."""
        raise NotImplementedError

    def shortened(self) -> Mode:
        """Return the mode with at most two passes over the samples, to rehearse attempts that take seconds each."""
        return self

    def begin(self, method: Method[Any], arena: Arena) -> Beginning:
        """Make the contexts that the run begins with, once and without any call.

        Raises ``ConfigError`` or ``DataError`` if a file to start from cannot be used, or the method cannot work
        with the samples and labels.
        """
        method.check(arena)
        return Beginning(start=method.start(arena))

    def tests_start(self, method: Method[Any]) -> bool:
        """Whether the initial context is also tested.

        Methods with trials compare the last trials with the first ones instead.
        """
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


def refuse_retries(method: Method[Any]) -> None:
    """Raise ``ConfigError`` for a method that only tries samples again."""
    if method.scores_last_trial:
        raise ConfigError(
            "this method carries nothing from sample to sample: use mode=online, which tries each test sample again"
        )
