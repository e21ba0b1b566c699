"""Offline adaptation: learn on the training split, then evaluate on the test split (paper, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.core.context import Context
from ace_bench.core.method import Method
from ace_bench.core.settings import Count
from ace_bench.core.types import Record, Sample, Stage, Step
from ace_bench.core.workload import Span, exactly
from ace_bench.runners.adapt import fit, take_step
from ace_bench.runners.experiment import Experiment, ModeWorkload, RunOutcome, evaluate, refuse_retries
from ace_bench.runners.unanswered import until_answered

TRAIN, VALIDATION, TEST = "train", "val", "test"

_Planned = tuple[Step, Sequence[Sample]]


@dataclass(frozen=True, kw_only=True)
class Offline:
    """``epochs`` passes over the training samples in seeded order, ``batch_size`` samples a step.

    ``select`` is the context to test: the ``final`` one (the paper names no selection), or the ``best`` on the
    validation split. ``validate`` says when that is evaluated, and what is best: with ``epochs`` every ``eval_every``
    steps and after each epoch, and the first of the best contexts; with ``multiples`` (the official code) after
    each multiple of ``eval_every`` steps within an epoch, and the first of the best if it scores above 0, else the
    initial context.
    ``before`` also tests the context before adaptation.
    """

    epochs: Annotated[int, Meta(ge=1, le=1000)]
    batch_size: Count
    shuffle: bool
    select: Literal["final", "best"]
    eval_every: Count
    validate: Literal["epochs", "multiples"]
    before: bool

    def reads(self, method: Method[Any]) -> tuple[str, ...]:
        """All splits that a run may read; optimisers use the validation split themselves."""
        validates = self.select == "best" or method.adaptation == "fit"
        return (TRAIN, VALIDATION, TEST) if validates else (TRAIN, TEST)

    @property
    def splits(self) -> Mapping[Stage, str]:
        """The split that each stage works on."""
        return {Stage.ADAPT: TRAIN, Stage.EVALUATE: TEST}

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return all epochs, and the evaluations before, after and on the validation split."""
        arena = experiment.arena
        test, train = len(arena.samples(TEST)), arena.samples(TRAIN)
        if not experiment.adapts:
            return ModeWorkload(learnt=0, steps=0, evaluated=exactly(test))
        tested = Span(test, test * (1 + self.before))
        if experiment.method.adaptation == "fit":
            return ModeWorkload(learnt=len(train), steps=1, evaluated=tested)
        plan = self._plan(train, experiment.seed)
        looks = sum(validated for _, validated in self._segments(plan))
        validated = Span(1, looks).times(exactly(len(arena.samples(VALIDATION)))) if looks else exactly(0)
        return ModeWorkload(learnt=len(train) * self.epochs, steps=len(plan), evaluated=tested + validated)

    def check(self, method: Method[Any]) -> None:
        """Reject a method that only retries a sample; one that does not learn is only evaluated."""
        refuse_retries(method)

    def begin(self, experiment: Experiment) -> Context:
        """Return the context before adaptation; the method checks its samples and labels."""
        experiment.method.check(experiment.arena)
        start: Context = experiment.method.start(experiment.arena)
        return start

    def run(self, experiment: Experiment) -> RunOutcome:
        """Evaluate, adapt, evaluate again."""
        start = self.begin(experiment)
        test = experiment.arena.samples(TEST)
        if not experiment.adapts:
            return RunOutcome(split=TEST, context=start, after=evaluate(experiment, test, start, "evaluate test"))
        before = evaluate(experiment, test, start, "evaluate test, before") if self.before else None
        final, validation = self._adapt(experiment, start)
        contexts = {"initial": start, "final": final}
        chosen = final
        if self.select == "best" and experiment.method.adaptation == "steps":
            chosen = contexts["best"] = self._best(start, validation)
        after = evaluate(experiment, test, chosen, "evaluate test, after")
        return RunOutcome(
            split=TEST,
            context=chosen,
            after=after,
            before=before,
            contexts=contexts,
            validation=[one.record() for one in validation],
        )

    def _adapt(self, experiment: Experiment, context: Context) -> tuple[Context, list[_Validation]]:
        if experiment.method.adaptation == "fit":
            return fit(experiment, context), []
        plan = self._plan(experiment.arena.samples(TRAIN), experiment.seed)
        validations: list[_Validation] = []
        for segment, validated in self._segments(plan):
            experiment.progress.begin("adapt", len(plan), done=segment[0][0].index)
            with experiment.clock(Stage.ADAPT) as arena:
                for step, samples in segment:
                    epoch = arena.at(Stage.ADAPT, f"epoch{step.epoch}")
                    take = partial(take_step, experiment, epoch, context, samples, step)
                    context = until_answered(take, arena.gateway.replay_all)
            if validated:
                validations.append(self._validate(experiment, context, segment[-1][0]))
        return context, validations

    def _plan(self, samples: Sequence[Sample], seed: int) -> list[_Planned]:
        batches = []
        for epoch in range(self.epochs):
            order = list(samples)
            if self.shuffle:
                random.Random(f"{seed}/train/{epoch}").shuffle(order)
            batches += [(epoch, order[i : i + self.batch_size]) for i in range(0, len(order), self.batch_size)]
        return [
            (Step(index=index, total=len(batches), epoch=epoch, epochs=self.epochs), batch)
            for index, (epoch, batch) in enumerate(batches)
        ]

    def _segments(self, plan: Sequence[_Planned]) -> list[tuple[Sequence[_Planned], bool]]:
        """Split the plan where the validation split is evaluated; the last part may end without that."""
        ends = [number for number in range(1, len(plan) + 1) if self._is_validated(plan, number)]
        parts = [(plan[start:end], True) for start, end in zip([0, *ends], ends, strict=False)]
        rest = plan[ends[-1] if ends else 0 :]
        return [*parts, (rest, False)] if rest else parts

    def _is_validated(self, plan: Sequence[_Planned], number: int) -> bool:
        """Whether the validation split is evaluated after so many steps."""
        if self.select == "final":
            return False
        step = plan[number - 1][0]
        if self.validate == "multiples":
            return (step.epoch_index + 1) % self.eval_every == 0
        return number % self.eval_every == 0 or step.epoch_index + 1 == step.epoch_total

    def _best(self, start: Context, validation: Sequence[_Validation]) -> Context:
        """Return the first of the contexts with the best score."""
        best = max(validation, key=lambda one: (one.score, -one.step), default=None)
        if best is None or (self.validate == "multiples" and best.score <= 0):
            return start
        return best.context

    def _validate(self, experiment: Experiment, context: Context, step: Step) -> _Validation:
        records = evaluate(
            experiment, experiment.arena.samples(VALIDATION), context, f"validate after step {step.index + 1}"
        )
        task = experiment.arena.task
        score = task.score([record.grade for record in records])[task.headline]
        return _Validation(step=step.index + 1, score=score, context=context)


@dataclass(frozen=True, kw_only=True)
class _Validation:
    step: int
    score: float
    context: Context

    def record(self) -> Record:
        return {"step": self.step, "score": self.score, "context": self.context.digest}
