"""Online adaptation: predict each test sample, score it, then learn from it (paper, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Method, exactly
from ace_bench.core.settings import Count
from ace_bench.core.types import Sample, Step
from ace_bench.runners.experiment import TEST, Batch, Experiment
from ace_bench.runners.mode import Mode, ModeWorkload


@dataclass(frozen=True, kw_only=True)
class Online(Mode):
    """One pass over the test split, in seeded order or, without ``shuffle``, in file order; the same for all methods.

    ``window`` samples are predicted under the current context before any of them is learned: 1 is the paper's text,
    15 the official script. Learning takes steps of ``batch_size`` samples. A sample whose context has changed since
    its prediction is rolled out again for learning, as in the official code; only the prediction is scored.
    """

    epochs: Count
    window: Count
    batch_size: Count
    shuffle: bool

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for more than one pass, and for steps that are larger than a window."""
        if self.epochs != 1:
            raise SettingError(f"epochs={self.epochs} must be 1 with mode=online; use mode=offline for more epochs")
        if self.batch_size > self.window:
            raise SettingError(
                f"batch_size={self.batch_size} samples cannot be one step where window={self.window} are "
                f"predicted at once: set window={self.batch_size}"
            )

    def draws_order(self, method: Method[Any]) -> bool:
        """Whether a method learns from a shuffled stream."""
        return self.shuffle and method.adaptation != "none"

    def check(self, method: Method[Any]) -> None:
        """Reject offline optimisers, and methods that take no such batches."""
        if method.adaptation == "fit":
            raise ConfigError(f"{type(method).__name__} optimises on a training split; use mode=offline")
        method.check_batch(self.batch_size)

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return one pass. A sample after the first step of its window may be rolled out again."""
        samples = len(experiment.arena.samples(TEST))
        if not experiment.adapts:
            return ModeWorkload(learnt=0, steps=0, evaluated=exactly(samples))
        batches = self.batches(experiment)
        repeated = samples - sum(len(batch.samples) for batch in batches if batch.predicts)
        evaluated = exactly(samples * self.tests_start(experiment.method))
        return ModeWorkload(learnt=samples, steps=len(batches), evaluated=evaluated, repeated=repeated)

    def tested(self, experiment: Experiment) -> Sequence[Sample]:
        """Return the stream: the test split in its order."""
        order = list(experiment.arena.samples(TEST))
        if self.shuffle:
            random.Random(f"{experiment.seed}/test").shuffle(order)
        return order

    def batches(self, experiment: Experiment) -> Sequence[Batch]:
        """Return the steps of all windows; the first of a window attempts the whole window."""
        if not experiment.adapts:
            return ()
        order, groups = self.tested(experiment), list[tuple[int, Sequence[Sample], Sequence[Sample]]]()
        for start in range(0, len(order), self.window):
            window = order[start : start + self.window]
            steps = range(0, len(window), self.batch_size)
            groups += [(start + at, window[at : at + self.batch_size], () if at else window) for at in steps]
        return [
            Batch(
                step=Step(index=index, total=len(groups), epoch=0, samples_before=before, samples=len(order)),
                samples=samples,
                window=window,
                predicts=bool(window),
                prepares=bool(window),
            )
            for index, (before, samples, window) in enumerate(groups)
        ]
