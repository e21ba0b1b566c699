"""Pairs of runs that differ in hidden reference answers or verdicts alone: they must send the same messages."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ace_bench.core.task import Task
from ace_bench.core.types import Grade, Sample
from tests.launching import Ran, launch, learns, needs_verdicts, optimises, options, quick, retries

LABELS, MODES = ("gold", "correctness", "none"), ("offline", "online", "evaluate")
SLOW_TASKS = ("bird_sql",)
NEED_GOLD = ("awm_offline", "icl")
"""Methods that refuse all labels but gold."""
SMALL = ("limit={train: 3, val: 2, test: 3}", "concurrency=1", "mode.before=false", "estimate=false")

Pairs = Sequence[tuple[str, str]]
Call = tuple[str, str, tuple[tuple[str, str], ...], str]
"""Session, role, messages and schema of a call."""
Hides = Callable[[Sample], tuple[bool, bool]]
"""Whether the reference answer, and whether the verdict of a sample's grades is another one."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a pair of runs has in common."""

    task: str
    method: str
    labels: str
    mode: str

    def __str__(self) -> str:
        return "-".join(vars(self).values())

    @property
    def refused(self) -> bool:
        """Whether the method refuses the mode or the labels."""
        if retries(self.method):
            return self.mode != "online"
        if self.mode == "evaluate":
            return False
        if optimises(self.method) and (self.mode == "online" or self.labels == "none"):
            return True
        return (needs_verdicts(self.method) and self.labels == "none") or (
            self.method in NEED_GOLD and self.labels != "gold"
        )

    def pairs(self, cover: Pairs) -> set[tuple[str, str]]:
        """Return the pairs of values of the settings in ``cover``."""
        return {(getattr(self, one), getattr(self, other)) for one, other in cover}

    def hidden(self, split: str) -> tuple[bool, bool]:
        """What the models of this run may not see of a split at any time: the reference answers, and the verdicts."""
        adapts = learns(self.method) and (self.mode == "online" or (self.mode == "offline" and split != "test"))
        return (self.labels != "gold", self.labels == "none") if adapts else (True, True)


def cases(tasks: Iterable[str], cover: Pairs, quick: Pairs = ()) -> list[Any]:
    """Every task with every method, labels and mode, without what is refused.

    All but a selection that has every pair of values of the settings in ``cover`` are marked as thorough. With
    ``quick``, the selection is slow but for a smaller one, which has every pair of that.
    """
    names = tuple(Case.__dataclass_fields__)
    every = [Case(**dict(zip(names, one, strict=True))) for one in product(tasks, options("method"), LABELS, MODES)]
    every = [case for case in every if not case.refused]
    chosen = _covering(every, cover)
    first = _covering(chosen, quick or cover)
    marks = {case: () if case in first else pytest.mark.slow for case in chosen}
    return [pytest.param(one, id=str(one), marks=marks.get(one, pytest.mark.thorough)) for one in every]


def _covering(every: Sequence[Case], cover: Pairs) -> list[Case]:
    """Choose cases that have every pair of values of the settings in ``cover``: the next one has the most that lack."""
    left = {pair for case in every for pair in case.pairs(cover)}
    mixed = sorted(Random(0).sample(every, len(every)), key=lambda one: one.task in SLOW_TASKS)
    chosen = list[Case]()
    while left:
        chosen.append(max(mixed, key=lambda one: len(left & one.pairs(cover))))
        left -= chosen[-1].pairs(cover)
    return chosen


class Recorder:
    """A backbone that keeps what it is sent."""

    def __init__(self, inner: Any, calls: list[Call]):
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def complete(self, messages: Sequence[Any], *, role: str, session: str, schema: Any = None) -> Any:
        said = tuple((message.role, message.content) for message in messages)
        self._calls.append((session, role, said, json.dumps(schema, sort_keys=True)))
        return self._inner.complete(messages, role=role, session=session, schema=schema)


class RememberedSession:
    """A session in a world that always answers the same actions in the same way: none is run twice."""

    def __init__(self, sample: str, start: Callable[[], Any], seen: dict[Any, Any]):
        self._sample, self._start, self._seen = sample, start, seen
        self._actions: tuple[str, ...] = ()
        self._world, self._done = None, 0

    @property
    def finished(self) -> bool:
        return self._look("finished", lambda world: world.finished)

    def step(self, action: str) -> str:
        def act(world: Any) -> str:
            self._done += 1
            return world.step(action)

        output = self._look(f"step {action}", act)
        self._actions += (action,)
        return output

    def grade(self, answer: str | None) -> Grade:
        return self._look(f"grade {answer is None}", lambda world: world.grade(answer))

    def _look(self, what: str, look: Callable[[Any], Any]) -> Any:
        key = (self._sample, self._actions, what)
        if key not in self._seen:
            self._world = self._world or self._start()
            for action in self._actions[self._done :]:
                self._world.step(action)
            self._done = len(self._actions)
            self._seen[key] = look(self._world)
        return self._seen[key]


def hiding(task: Task, hides: Hides, seen: dict[Any, Any] | None) -> Task:
    """Let a task give other reference answers and verdicts; what the environment shows stays.

    ``seen`` keeps what a world answered; without it all actions are run.
    """

    def changed(sample: Sample, grade: Grade) -> Grade:
        gold, verdict = hides(sample)
        if gold:
            other = f"not <{len(grade.gold)}> of {sample.id}"
            grade = replace(grade, gold=other, report=f"{other} {grade.report}", score=1 - grade.score / 2)
        return replace(grade, correct=not grade.correct, score=1 - grade.score) if verdict else grade

    opens, fails = task.open, task.failing_grade

    @contextmanager
    def opened(sample: Sample) -> Any:
        with ExitStack() as stack:
            start = partial(stack.enter_context, opens(sample))
            session = start() if seen is None else RememberedSession(sample.id, start, seen)
            grades = session.grade
            session.grade = lambda answer: changed(sample, grades(answer))
            yield session

    task.open, task.failing_grade = opened, lambda sample: changed(sample, fails(sample))  # type: ignore[method-assign]
    return task


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Runs in ``folder`` with the same settings."""

    folder: Path
    settings: tuple[str, ...]
    seen: dict[Any, Any] | None = None

    def sent(self, name: str, *more: str, hides: Hides = lambda _: (False, False)) -> tuple[Ran, list[Call]]:
        """Run once and return what was sent, in order."""
        calls: list[Call] = []
        ran = launch(
            self.folder / name,
            *self.settings,
            *more,
            backbone=lambda inner: Recorder(inner, calls),
            task=lambda task: hiding(task, hides, self.seen),
        )
        assert ran.status == 0
        return ran, calls


def check_pair(case: Case, folder: Path, *more: str, seen: dict[Any, Any] | None = None) -> int:
    """Compare runs of a case that differ in what is hidden; return the number of calls compared."""
    pair = Pair(folder=folder, settings=(*SMALL, *more, f"method={case.method}"), seen=seen)
    given = (*quick(case.method), f"labels={case.labels}", *_mode(case.mode))
    if case.mode == "evaluate":
        made, _ = pair.sent("made", *quick(case.method), "labels=gold", *_mode("offline"))
        given = (f"labels={case.labels}", "mode=evaluate", f"mode.context={made.folder / 'contexts' / 'tested.json'}")
    _, first = pair.sent("first", *given)
    compared = 0
    if any(any(case.hidden(split)) for split in ("train", "test")):
        _, other = pair.sent("other", *given, hides=lambda sample: case.hidden(sample.split))
        assert other == first
        compared += len(first)
    generated = [(place, call[0]) for place, call in enumerate(first) if call[1].startswith("generator")]
    attempts = [session for _, session in generated if _is_first_attempt(session)]
    if attempts and case.labels != "none" and not optimises(case.method):
        # The last sample that is learnt from: nothing of it is known before its first attempt is over.
        last = _sample_of(attempts[-1])
        _, other = pair.sent("last", *given, hides=lambda sample: (sample.id == last,) * 2)
        end = max(place for place, session in generated if session == attempts[-1]) + 1
        assert other[:end] == first[:end]
        compared += end
    assert compared
    return compared


def _mode(mode: str) -> tuple[str, ...]:
    return (f"mode={mode}", *(["mode.epochs=1"] if mode == "offline" else []))


def _is_first_attempt(session: str) -> bool:
    return session.startswith("adapt/") and session.endswith("/0")


def _sample_of(session: str) -> str:
    return next(part for part in session.split("/") if any(f"-{split}-" in part for split in ("train", "val", "test")))
