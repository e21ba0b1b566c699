"""What tables read from a run's journal and calls: tested rollouts and their scores, tokens by role and split."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ace_bench.core.backbones import GENERATOR
from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.method import FINAL_TRIAL
from ace_bench.core.types import NO_USAGE, Fault, Record, Stage, Usage
from ace_bench.report.statistics import Point, Points
from ace_bench.store.lines import read_lines

_SAMPLE = re.compile(r"(?:^|/)(?P<id>\w+-(?P<split>train|val|test)-[^/]+)(?:/(?P<context>[0-9a-f]{12})(?:/|$))?")


class GradeScores(msgspec.Struct, gc=False):
    """The fields of a grade that scores are computed from. ``place`` is the sample's in the stream of an online run."""

    score: float
    correct: bool
    group: str = ""
    detail: dict[str, float] = {}
    place: int = -1


class _Event(msgspec.Struct, gc=False):
    event: str
    first: str = ""
    last: str = ""


class RolloutLine(msgspec.Struct, gc=False):
    """The fields of a journal line that tell which rollouts count, what they scored, and how a context grew."""

    kind: str
    key: str = ""
    stage: str = ""
    split: str = ""
    sample: str = ""
    context: str = ""
    samples: tuple[str, ...] = ()
    index: int = 0
    trial: int = 0
    grade: GradeScores | None = None
    events: tuple[_Event, ...] = ()
    context_tokens: int = 0


L = TypeVar("L", bound=RolloutLine)
T = TypeVar("T")


class StepChange(msgspec.Struct, gc=False):
    """The fields of a step that describe its change. Applying ``patch`` gives the context with ``digest``."""

    kind: str
    index: int = 0
    epoch: int = 0
    samples: tuple[str, ...] = ()
    patch: dict[str, Any] = {}
    digest: str = ""
    context_tokens: int = 0


class CallCosts(msgspec.Struct, gc=False):
    """The fields of a call that describe its cost and purpose."""

    stage: Stage
    role: str
    session: str
    usage: Usage
    seconds: float = 0.0
    replayed: bool = False
    fault: Fault | None = None
    asked_again: int = 0
    at: float = 0.0
    model: str = ""


def read_calls(folder: Path) -> list[CallCosts]:
    """Read the calls of a run. Raises ``StoreError``."""
    return read_lines_of(folder / "calls.jsonl", CallCosts)


def evaluates_other_context(call: CallCosts, split: str, context: str) -> bool:
    """Whether a call belongs to an evaluation of a split with a context other than the one with this digest."""
    sample = _SAMPLE.search(call.session) if call.stage is Stage.EVALUATE else None
    return bool(sample and sample["split"] == split and sample["context"] not in (None, context[:12]))


def read_steps(folder: Path) -> Iterator[StepChange]:
    """Read the change of each step, in order. Raises ``StoreError``."""
    return (line for line in read_journal(folder, StepChange) if line.kind == "step")


def sharpest_fall(sizes: Sequence[int]) -> int | None:
    """Return the index of the step that removed most tokens, ``None`` if none removed any (paper, figure 2)."""
    falls = [(after - before, step) for step, (before, after) in enumerate(pairwise(sizes), start=1) if after < before]
    return min(falls)[1] if falls else None


def collapsed(sizes: Sequence[int]) -> bool:
    """Whether a step left at most half of a context that was at least half as large as the largest."""
    largest = max(sizes, default=0)
    return any(largest <= 2 * before and 2 * after <= before for before, after in pairwise(sizes) if before)


def read_journal(folder: Path, kind: type[T]) -> list[T]:
    """Read the fields of ``kind`` from each line of a run's journal. Raises ``StoreError``."""
    return read_lines_of(folder / "journal.jsonl", kind)


def tested_rollouts(journal: Sequence[L], metrics: Record) -> dict[str, L]:
    """Return the rollouts behind the tested figures of a finished run, by sample."""
    split = metrics["headline"]["split"]
    if metrics["mode"] == "online" and metrics["steps"]:
        return predictions(journal, split)
    return evaluations(journal, split, metrics["context"]["digest"])


def predictions(journal: Sequence[L], split: str, *, first: bool = False) -> dict[str, L]:
    """Return by sample the rollouts of an online run that predict: the first of each, before learning from the sample.

    If a method tries samples again, the trial that counts is returned, or with ``first`` the first one.
    """
    events = (event for line in journal for event in line.events if event.event == FINAL_TRIAL)
    counts = {event.first: event.last for event in events if event.first != event.last and not first}
    graded = {line.key: line for line in journal if line.key in counts.values()}
    tries = (line for line in rollouts_of(journal, split) if line.stage == Stage.ADAPT)
    first_rollouts = first_of_each(graded[counts[line.key]] if line.key in counts else line for line in tries)
    for step in (line for line in journal if line.kind == "step"):
        for sample in step.samples:
            if sample in first_rollouts:
                _grade(first_rollouts[sample]).place = step.index
    return first_rollouts


def evaluations(journal: Sequence[L], split: str, context: str) -> dict[str, L]:
    """Return by sample the rollouts of the last evaluation of a context, given by digest."""
    lines = [*rollouts_of(journal, split)]
    return first_of_each(line for line in reversed(lines) if line.stage == Stage.EVALUATE and line.context == context)


def points_of(grades: Mapping[str, GradeScores], metric: str, headline: str) -> Points:
    """Return the points whose mean is the metric. They are empty if the metric is not a mean over samples or groups.

    ``sgc`` is a mean over scenarios. A scenario is right if all of its tasks are. ``<metric>_<level>`` is a mean over
    the samples of a level, which their grades name.
    """
    if metric == "sgc":
        return _by_group(grades.values())
    scores = {sample: _score(grade, metric, headline) for sample, grade in grades.items()}
    return {
        s: Point(score=score, group=grades[s].group, place=grades[s].place)
        for s, score in scores.items()
        if score is not None
    }


def spent(calls: Iterable[CallCosts], wanted: str) -> float | None:
    """Sum up ``<stage>.<role>.<split>.<what>`` over calls. Unknown is ``None``.

    Role and split may be ``all``. ``not_val`` excludes the calls for samples of ``val``. ``<what>`` is ``in``, ``out``,
    ``calls``, ``rollouts`` (of the generator: each has its own session) or ``samples``. Replayed calls count as calls
    but cost nothing.
    """
    stage, role, split, figure = wanted.split(".")
    by_sample = split != "all" or figure == "samples"
    total, samples, sessions, count = NO_USAGE, set(), set(), 0
    for call in calls:
        if call.stage != stage or role not in ("all", call.role):
            continue
        sample = _SAMPLE.search(call.session) if by_sample else None
        sample_split = sample["split"] if sample else ""
        if split == "all" or (sample_split != split[4:] if split.startswith("not_") else sample_split == split):
            count += call.fault is None or not call.fault.unanswered
            total += NO_USAGE if call.replayed else call.usage
            samples |= {sample["id"]} if sample else set()
            sessions |= {call.session} if call.role == GENERATOR else set()
    figures = {
        "in": total.prompt,
        "out": total.completion,
        "calls": count,
        "rollouts": len(sessions),
        "samples": len(samples),
    }
    if figure not in figures:
        raise ConfigError(f"spent.{wanted} names the unknown {figure!r}; use {', '.join(figures)}")
    return figures[figure]


def rollouts_of(lines: Iterable[L], split: str) -> Iterator[L]:
    """Yield first rollouts in order. If one was repeated because a call had no answer, its last version counts."""
    tries = [line for line in lines if line.grade is not None and line.trial == 0]
    latest = {line.key or number: line for number, line in enumerate(tries)}
    return (line for line in latest.values() if line.split == split)


def first_of_each(lines: Iterable[L]) -> dict[str, L]:
    """Return the first rollout of each sample. Equal names and equal details are kept once, to save memory."""
    first_lines: dict[str, L] = {}
    details: dict[tuple[tuple[str, float], ...], dict[str, float]] = {}
    for line in lines:
        if line.sample not in first_lines:
            grade = _grade(line)
            grade.detail = details.setdefault(tuple(grade.detail.items()), grade.detail)
            first_lines[sys.intern(line.sample)] = line
    return first_lines


def _grade(line: RolloutLine) -> GradeScores:
    assert line.grade is not None, "only rollouts come here"
    return line.grade


def _score(grade: GradeScores, metric: str, headline: str) -> float | None:
    if metric == headline:
        return grade.score
    if metric in grade.detail:
        return grade.detail[metric]
    base, _, level = metric.rpartition("_")
    return _score(grade, base, headline) if base and level in grade.detail else None


def _by_group(grades: Iterable[GradeScores]) -> Points:
    groups: dict[str, list[GradeScores]] = {}
    for grade in grades:
        groups.setdefault(grade.group, []).append(grade)
    return {
        group: Point(score=float(all(task.correct for task in tasks)), place=min(task.place for task in tasks))
        for group, tasks in groups.items()
        if group
    }


def read_lines_of(path: Path, kind: type[T]) -> list[T]:
    """Read the fields of ``kind`` from each line. Raises ``StoreError`` if any is damaged: sums would be wrong."""
    if not path.exists():
        raise StoreError(f"{path} is missing; repeat the command of the run")
    entries: list[T] = read_lines(path, decoder_of(kind).decode).check().entries
    return entries
