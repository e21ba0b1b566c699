"""``mode=lifelong``: learn one stage after the other with one context, and test all stages after each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Method, Span, exactly
from ace_bench.core.settings import Count, Seed, Text
from ace_bench.core.types import Record, Sample, Step
from ace_bench.runners.experiment import TEST, TRAIN, VALIDATION, Batch, Experiment, StepTest
from ace_bench.runners.mode import Mode, ModeWorkload, refuse_retries
from ace_lifelong.stages import Division, divide

RESULTS = "lifelong"
"""The key of this mode's results in ``metrics.json``."""
FRESH, CARRIED = "fresh", "stage"
"""How the names of tests begin, before the number of the stage."""
_UNPLACED = Step(index=0, total=1, epoch=0)


@dataclass(frozen=True, kw_only=True)
class Lifelong(Mode):
    """Stages, learnt in an order by one context; after each, the test samples of all stages are tested.

    ``stages`` names them, ``None``: all that ``by`` gives (see ``stages.divide``), joined to ``parts``. ``stage_limit``
    is the most samples of a stage in each split. ``order`` or ``order_seed`` permutes the stages. With
    ``learnt_split=test`` each tested sample is a lesson after its attempt. ``fresh`` also learns each stage
    but the first from the initial context. An optimiser is fitted once a stage, on the samples of that stage.
    """

    stages: Sequence[Text] | None
    by: Text | None
    parts: Count | None
    stage_limit: Count | None
    order: Sequence[Text] | None
    order_seed: Seed | None
    learnt_split: Literal["train", "test"] = field()
    epochs: Count
    batch_size: Count
    shuffle: bool
    fresh: bool
    _divided: dict[int, Division] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for stages and orders that no task could have."""
        if self.stages is not None and len({*self.stages}) < 2:
            raise SettingError("stages must be two or more different ones: a life of one stage is mode=offline")
        if self.order is not None and self.order_seed is not None:
            raise SettingError(f"order_seed={self.order_seed} draws an order, and mode.order gives one: leave one out")
        if self.stages is not None and self.order is not None:
            self._check_order(self.stages)

    def reads(self, method: Method[Any]) -> tuple[str, ...]:
        """All splits that a run may read; optimisers use the validation split themselves."""
        if method.adaptation == "fit":
            return (TRAIN, VALIDATION, TEST)
        return tuple(dict.fromkeys((self.learnt_split, TEST)))

    def check(self, method: Method[Any]) -> None:
        """Reject methods that only try a sample again, and optimisers that would learn from the test split."""
        refuse_retries(method)
        if method.adaptation == "fit" and self.learnt_split == TEST:
            raise ConfigError(f"{type(method).__name__} optimises on training samples; use mode.learnt_split=train")

    def advise(self, experiment: Experiment) -> str | None:
        """Return the stages with their sizes; raises ``ConfigError`` for one that has no samples."""
        sizes = {}
        for name in self.order_of(experiment):
            learnt, tested = (
                len(self._part(name, self.learnt_split, experiment)),
                len(self._part(name, TEST, experiment)),
            )
            if not learnt or not tested:
                raise ConfigError(
                    f"stage {name} has {learnt} samples to learn from and {tested} to test: raise limit (or set "
                    "mode.stage_limit in its place), join stages by mode.parts, or choose others by mode.stages"
                )
            sizes[name] = f"{name} ({learnt} samples to learn from, {tested} tested)"
        return f"Stages by {self._division(experiment).by}: {', then '.join(sizes.values())}."

    def workload(self, experiment: Experiment) -> ModeWorkload:
        """Return the learning of all stages, and a test of all samples after each."""
        tested, batches = len(self.tested(experiment)), self.batches(experiment)
        if not batches:
            return ModeWorkload(learnt=0, steps=0, evaluated=exactly(tested))
        looks = sum(len(batch.tests) for batch in batches) + tested * self.before
        fits = sum(bool(batch.tests) for batch in batches) if experiment.method.adaptation == "fit" else 1
        learnt = sum(len(batch.samples) for batch in batches) or len(experiment.arena.samples(TRAIN))
        return ModeWorkload(learnt=learnt, steps=len(batches), evaluated=Span(tested, looks), fits=fits)

    def tested(self, experiment: Experiment) -> Sequence[Sample]:
        """Return the test samples of all stages, in file order."""
        some = {sample.id for name in self.order_of(experiment) for sample in self._part(name, TEST, experiment)}
        return [sample for sample in experiment.arena.samples(TEST) if sample.id in some]

    def batches(self, experiment: Experiment) -> Sequence[Batch]:
        """Return the steps of the stages learnt afresh, each followed by a restart, then the steps of the stream."""
        if not experiment.adapts:
            return ()
        order, found, everything = self.order_of(experiment), list[Batch](), self.tested(experiment)
        for number, name in enumerate(order[1:] if self.fresh else (), 2):
            found += self._stage(experiment, name, f"{FRESH}{number}", self._part(name, TEST, experiment))
            found.append(Batch(step=_UNPLACED, samples=(), scope=f"{FRESH}{number}/restart", restarts=True))
        for number, name in enumerate(order, 1):
            found += self._stage(experiment, name, f"{CARRIED}{number}", everything)
        turn, placed = 0, []
        for index, batch in enumerate(found):
            placed.append(replace(batch, step=Step(index=index, total=len(found), epoch=0), turn=turn))
            turn += len(batch.samples)
        return placed

    def results(self, experiment: Experiment, tests: Sequence[StepTest]) -> Record:
        """Return the stages, the samples that test each, and the scores of each test by stage."""
        division, order = self._division(experiment), self.order_of(experiment)
        stages = {
            name: {
                "holds": [*division.holds[name]],
                "learnt": len(self._part(name, self.learnt_split, experiment)),
                "tested": [sample.id for sample in self._part(name, TEST, experiment)],
            }
            for name in order
        }
        rows = [_describe(test, experiment, division.stage_of) for test in tests]
        about = {"by": division.by, "learnt_split": self.learnt_split, "epochs": self.epochs}
        return {RESULTS: {**about, "order": [*order], "stages": stages, "tests": rows}}

    def order_of(self, experiment: Experiment) -> Sequence[str]:
        """Return the stages in the order in which they are learnt; raises ``ConfigError``."""
        known = [*self._division(experiment).holds]
        names = [*(self.stages or known)]
        if unknown := [name for name in names if name not in known]:
            raise ConfigError(
                f"mode.stages names {unknown[0]}, and the stages by {self._division(experiment).by} are "
                f"{', '.join(known)}; several tasks are task=stream"
            )
        if len(names) < 2:
            raise ConfigError(f"there is one stage, {names[0]}: a life of one stage is mode=offline")
        if self.order is not None:
            self._check_order(names)
            return self.order
        if self.order_seed is not None:
            random.Random(f"{self.order_seed}/stages").shuffle(names)
        return names

    def _check_order(self, names: Sequence[str]) -> None:
        if sorted(self.order or ()) != sorted(names):
            given = ",".join(self.order or ())
            raise ConfigError(f"mode.order=[{given}] must name each of the stages once: {', '.join(names)}")

    def _division(self, experiment: Experiment) -> Division:
        task = experiment.arena.task
        if id(task) not in self._divided:
            self._divided[id(task)] = divide(task, self.reads(experiment.method), self.by, self.parts)
        return self._divided[id(task)]

    def _part(self, name: str, split: str, experiment: Experiment) -> Sequence[Sample]:
        """Return the first ``stage_limit`` samples of a stage in a split, in file order."""
        stage_of = self._division(experiment).stage_of
        found = [sample for sample in experiment.arena.samples(split) if stage_of[sample.id] == name]
        return found[: self.stage_limit]

    def _stage(self, experiment: Experiment, name: str, scope: str, tests: Sequence[Sample]) -> Sequence[Batch]:
        """Return the steps of a stage, without their places in the run; the last one is tested."""
        splits = self.reads(experiment.method)
        part = frozenset(sample.id for split in splits for sample in self._part(name, split, experiment))
        found = [
            Batch(step=_UNPLACED, samples=samples, scope=f"{scope}/epoch{epoch}", part=part)
            for epoch, samples in self._groups(experiment, name)
        ]
        return [*found[:-1], *(replace(last, tests=tests) for last in found[-1:])]

    def _groups(self, experiment: Experiment, name: str) -> Iterator[tuple[int, Sequence[Sample]]]:
        """Yield the samples of each step of a stage; their order depends on the seed and the stage alone."""
        if experiment.method.adaptation == "fit":
            yield 0, ()
            return
        for epoch in range(self.epochs):
            samples = [*self._part(name, self.learnt_split, experiment)]
            if self.shuffle:
                random.Random(f"{experiment.seed}/{name}/{epoch}").shuffle(samples)
            for at in range(0, len(samples), self.batch_size):
                yield epoch, samples[at : at + self.batch_size]


def _describe(test: StepTest, experiment: Experiment, stage_of: Mapping[str, str]) -> Record:
    """Return a test: what was learnt before it, its context, and its scores in percent by stage."""
    scores: dict[str, list[float]] = {}
    for record in test.records:
        scores.setdefault(stage_of[record.sample], []).append(record.grade.score)
    return {
        "after": test.name.split("/")[0],
        "scope": test.name if experiment.repeats else "",
        "context": test.context.digest,
        "tokens": test.context.tokens,
        "items": test.context.size,
        "scores": {name: round(100 * sum(some) / len(some), 4) for name, some in scores.items()},
    }
