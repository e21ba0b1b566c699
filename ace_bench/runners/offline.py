"""Offline adaptation: learn on the training split, then evaluate on the test split (paper, section 4.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.core.context import Context
from ace_bench.core.method import Method, Span, exactly
from ace_bench.core.settings import Count
from ace_bench.core.types import Sample, Step
from ace_bench.runners.experiment import TEST, TRAIN, VALIDATION, Batch, Experiment, Validation
from ace_bench.runners.mode import Mode, ModeWorkload, refuse_retries


@dataclass(frozen=True, kw_only=True)
class Offline(Mode):
    """``epochs`` passes over the training samples in seeded order, ``batch_size`` samples a step.

    ``select`` is the context to test: the ``final`` one (the paper names no selection), or the ``best`` on the
    validation split. ``validate`` says when that is evaluated, and what is best: with ``epochs`` every ``eval_every``
    steps and after each epoch, and the first of the best contexts; with ``multiples`` (the official code) after
    each step that ends at a multiple of ``eval_every`` samples of an epoch, and the first of the best if it scores
    above 0, else the initial context.
    ``before`` also tests the context before adaptation. A method that optimises in one go takes one step without
    samples.
    """

    epochs: Annotated[int, Meta(ge=1, le=1000)]
    batch_size: Count
    shuffle: bool
    select: Literal["final", "best"]
    eval_every: Count
    validate: Literal["epochs", "multiples"]
    learnt_split: str = field(init=False, default=TRAIN)

    def reads(self, method: Method[Any]) -> tuple[str, ...]:
        """All splits that a run may read; optimisers use the validation split themselves."""
        validates = self.select == "best" or method.adaptation == "fit"
        return (TRAIN, VALIDATION, TEST) if validates else (TRAIN, TEST)

    def draws_order(self, method: Method[Any]) -> bool:
        """Whether a method learns step by step from shuffled samples."""
        return self.shuffle and method.adaptation == "steps"

    def check(self, method: Method[Any]) -> None:
        """Reject a method that only retries, or takes no such batches; one that does not learn is only evaluated."""
        refuse_retries(method)
        method.check_batch(self.batch_size)

    def shortened(self) -> Offline:
        """Return the mode with two epochs: the second one starts from a context that has learnt."""
        return replace(self, epochs=min(self.epochs, 2))

    def advise(self, experiment: Experiment) -> str | None:
        """Return a sentence where no context is validated, so that learning cannot change what is tested."""
        batches = self.batches(experiment)
        learns = experiment.method.adaptation == "steps" and batches
        if self.select == "final" or not learns or any(batch.validates for batch in batches):
            return None
        return (
            f"No step is validated (an epoch has {len(batches) // self.epochs}, mode.validate=multiples and "
            f"mode.eval_every={self.eval_every}), so the test is of the context from before adaptation: raise the "
            "limit, lower mode.eval_every, or set mode.select=final."
        )

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return all epochs, and the evaluations before, after and on the validation split."""
        arena, batches = experiment.arena, self.batches(experiment)
        test, train = len(arena.samples(TEST)), len(arena.samples(TRAIN))
        if not batches:
            return ModeWorkload(learnt=0, steps=0, evaluated=exactly(test))
        evaluated = Span(test, test * (1 + self.before))
        if looks := sum(batch.validates for batch in batches):
            evaluated += Span(1, looks).times(exactly(len(arena.samples(VALIDATION))))
        passes = 1 if experiment.method.adaptation == "fit" else self.epochs
        return ModeWorkload(learnt=train * passes, steps=len(batches), evaluated=evaluated)

    def batches(self, experiment: Experiment) -> Sequence[Batch]:
        """Return the batches of all epochs."""
        if not experiment.adapts:
            return ()
        if experiment.method.adaptation == "fit":
            return (Batch(step=Step(index=0, total=1, epoch=0), samples=()),)
        samples = experiment.arena.samples(TRAIN)
        groups: list[tuple[int, Sequence[Sample]]] = []
        for epoch in range(self.epochs):
            order = list(samples)
            if self.shuffle:
                random.Random(f"{experiment.seed}/train/{epoch}").shuffle(order)
            groups += [(epoch, order[i : i + self.batch_size]) for i in range(0, len(order), self.batch_size)]
        batches = []
        for index, (epoch, group) in enumerate(groups):
            before = index % (len(groups) // self.epochs) * self.batch_size
            place = {"samples_before": before, "samples": len(samples)}
            step = Step(index=index, total=len(groups), epoch=epoch, epochs=self.epochs, **place)
            validates = self._validates(step, before + len(group))
            batches.append(Batch(step=step, samples=group, scope=f"epoch{epoch}", validates=validates))
        return batches

    def choose(self, experiment: Experiment, final: Context, validations: Sequence[Validation]) -> tuple[str, Context]:
        """Return the final context, or the first with the best score."""
        if self.select == "final" or experiment.method.adaptation != "steps":
            return "final", final
        best = max(validations, key=lambda one: (one.score, -one.step), default=None)
        if best is None or (self.validate == "multiples" and best.score <= 0):
            return "best", experiment.beginning.start
        return "best", best.context

    def _validates(self, step: Step, learnt: int) -> bool:
        """Whether the validation split is evaluated after a step, with so many samples of the epoch learnt from."""
        if self.select == "final":
            return False
        if self.validate == "multiples":
            return learnt % self.eval_every == 0
        return (step.index + 1) % self.eval_every == 0 or step.epoch_index + 1 == step.epoch_total
