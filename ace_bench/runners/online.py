"""Online adaptation: predict each test sample, score it, then learn from it (paper, section 4.1)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import LAST_TRIAL, ContextUpdate, Method
from ace_bench.core.settings import Count
from ace_bench.core.types import Sample, Stage, Step
from ace_bench.core.workload import exactly
from ace_bench.runners.adapt import take_step
from ace_bench.runners.arena import RunArena
from ace_bench.runners.experiment import Experiment, ModeWorkload, RunOutcome, evaluate
from ace_bench.runners.unanswered import until_answered
from ace_bench.store.journal import Journal, RolloutRecord

TEST = "test"


@dataclass(frozen=True, kw_only=True)
class Online:
    """One pass over the test split, in seeded order or, without ``shuffle``, in file order; the same for all methods.

    ``window`` samples are predicted under the current context before any of them is learnt from: 1 is the paper's text,
    15 the official script. A sample whose context has changed since its prediction is rolled out again for learning, as
    in the official code; only the prediction is scored.
    """

    epochs: Count
    window: Count
    shuffle: bool
    before: bool

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for more than one pass."""
        if self.epochs != 1:
            raise SettingError(f"epochs={self.epochs} must be 1 with mode=online; use mode=offline for more epochs")

    def reads(self, method: Method[Any]) -> tuple[str, ...]:  # noqa: ARG002 - the same for every method
        """All splits a run may read."""
        return (TEST,)

    @property
    def splits(self) -> Mapping[Stage, str]:
        """The split that each stage works on."""
        return {Stage.ADAPT: TEST, Stage.EVALUATE: TEST}

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return one pass; a sample behind the first of its window may be rolled out again."""
        samples = len(experiment.arena.samples(TEST))
        if not experiment.adapts:
            return ModeWorkload(learnt=0, steps=0, evaluated=exactly(samples))
        repeated = samples - math.ceil(samples / self.window)
        evaluated = exactly(samples * (self.before and not experiment.method.retries))
        return ModeWorkload(learnt=samples, steps=samples, evaluated=evaluated, repeated=repeated)

    def check(self, method: Method[Any]) -> None:
        """Reject offline optimisers."""
        if method.adaptation == "fit":
            raise ConfigError(f"{type(method).__name__} optimises on a training split; use mode=offline")

    def begin(self, experiment: Experiment) -> Context:
        """Return the context before the first sample."""
        experiment.method.check(experiment.arena)
        start: Context = experiment.method.start(experiment.arena)
        return start

    def run(self, experiment: Experiment) -> RunOutcome:
        """Run the stream."""
        context = start = self.begin(experiment)
        order = list(experiment.arena.samples(TEST))
        if self.shuffle:
            random.Random(f"{experiment.seed}/test").shuffle(order)
        if not experiment.adapts:
            return RunOutcome(split=TEST, context=start, after=evaluate(experiment, order, start, "evaluate test"))
        retries = experiment.method.retries  # then the first trials are what the last ones are compared with
        compares = self.before and not retries
        before = evaluate(experiment, order, start, "evaluate test, before") if compares else None
        experiment.progress.begin("predict and learn", len(order))
        predicted: list[RolloutRecord] = []
        with experiment.clock(Stage.ADAPT) as arena:
            for index in range(len(order)):
                go_on = partial(self._predict_and_learn, experiment, arena, context, order, index)
                context, records = until_answered(go_on, arena.gateway.replay_all)
                predicted += records
        contexts = {"initial": start, "final": context}
        if retries:
            counted = last_trials(experiment.folder.journal, predicted)
            return RunOutcome(split=TEST, context=context, after=counted, before=predicted, contexts=contexts)
        return RunOutcome(split=TEST, context=context, after=predicted, before=before, contexts=contexts)

    def _predict_and_learn(
        self, experiment: Experiment, arena: RunArena, context: Context, order: Sequence[Sample], index: int
    ) -> tuple[Context, Sequence[RolloutRecord]]:
        """Learn from one sample; the first sample of a window predicts the window before. Return the predictions."""
        step = Step(index=index, total=len(order), epoch=0)
        ready, records = ContextUpdate(context=context), list[RolloutRecord]()
        if index % self.window == 0:
            window = order[index : index + self.window]
            ready = experiment.method.prepare(context, window, step, arena)
            records = arena.records(arena.rollouts(window, ready.context))
        return take_step(experiment, arena, context, [order[index]], step, ready=ready), records


def last_trials(journal: Journal, first: Sequence[RolloutRecord]) -> list[RolloutRecord]:
    """Return the trials that count in place of the first ones, in their order."""
    events = (event for step in journal.steps for event in step.events if event["event"] == LAST_TRIAL)
    last = {event["first"]: event["last"] for event in events}
    return [journal.rollouts[last.get(record.key, record.key)] for record in first]
