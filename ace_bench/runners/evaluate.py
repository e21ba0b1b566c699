"""Evaluation of a saved context, without adaptation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, Method, Span
from ace_bench.core.settings import Text
from ace_bench.runners.experiment import Beginning, Experiment, Validation
from ace_bench.runners.mode import Mode, ModeWorkload, refuse_retries


@dataclass(frozen=True, kw_only=True)
class Evaluate(Mode):
    """Evaluate the context in file ``context`` on ``split``; ``before`` also evaluates without it."""

    context: Text | None
    split: Text = field()

    def draws_order(self, method: Method[Any]) -> bool:
        """Return false: samples keep the order of their file."""
        del method
        return False

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return one or two evaluations."""
        samples = len(experiment.arena.samples(self.split))
        return ModeWorkload(learnt=0, steps=0, evaluated=Span(samples, samples * (1 + self.before)))

    def check(self, method: Method[Any]) -> None:
        """Raise ``ConfigError`` if the file is not named or does not exist, or the method only retries."""
        refuse_retries(method)
        if self.context is None:
            raise ConfigError(
                "mode=evaluate needs a saved context: pass mode.context=<file>, for instance contexts/final.json of a "
                "run folder of the same method; method=base in mode=offline evaluates without one"
            )
        if not Path(self.context).is_file():
            raise ConfigError(f"mode.context={self.context} is not a file: give a saved context")
        if method.context_file not in (None, self.context):
            raise ConfigError(
                f"mode.context={self.context} and method.context={method.context_file} differ: give mode.context alone"
            )

    def begin(self, method: Method[Any], arena: Arena) -> Beginning:
        """Load the file, and make the context to compare with."""
        assert self.context is not None  # guaranteed by check()
        start: Context = method.baseline(arena)
        return Beginning(start=start, saved=method.load(Path(self.context), start, arena))

    def tests_start(self, method: Method[Any]) -> bool:  # noqa: ARG002 - the same for every method
        """Whether ``before`` is set."""
        return self.before

    def choose(
        self,
        experiment: Experiment,
        final: Context,  # noqa: ARG002 - nothing is learnt
        validations: Sequence[Validation],  # noqa: ARG002 - there are none
    ) -> tuple[str, Context]:
        """Return the saved context."""
        assert experiment.beginning.saved is not None
        return "saved", experiment.beginning.saved
