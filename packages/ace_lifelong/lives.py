"""Runs of ``mode=lifelong`` as scores: each sample of each stage under the context after each stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record, Stage
from ace_bench.report.differences import differences
from ace_bench.report.evidence import CallCosts, RolloutLine, read_calls, read_lines_of
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Point, Points, Seeds
from ace_lifelong.mode import CARRIED, FRESH, RESULTS

BEFORE = "before"
_NO_BATCHES = "after"
"""The only test of a method that does not learn."""
_SCOPE = re.compile(rf"^(?:{Stage.ADAPT}/)?({CARRIED}\d+)/")
_ROUNDING = 0.01
STAGES_SHOWN = 6
"""The most stages that titles name."""
_ORDER = ("order", "order_seed")


@dataclass(frozen=True, kw_only=True)
class LifeTest:
    """A test of a run: the size of its context, and the points of each stage's samples.

    ``asked`` is the mean number of tokens of the prompts that answered, ``None`` if unknown.
    """

    tokens: int
    items: int
    asked: float | None
    points: Mapping[str, Points]

    def score(self, stage: str) -> float:
        """Mean score of a stage in percent."""
        return 100 * fmean(point.score for point in self.points[stage].values())


@dataclass(frozen=True, kw_only=True)
class Life:
    """One run: its stages in order, its tests by name (``before``, ``stage1``, ``fresh2``), and what was spent.

    ``living`` holds the first attempts at the samples of learning, each made before its lesson; ``spent``
    the tokens of learning each stage.
    """

    run: RunSummary
    order: tuple[str, ...]
    tests: Mapping[str, LifeTest]
    living: Points
    spent: Mapping[str, int | None]

    @property
    def learns(self) -> bool:
        """Whether its context changes."""
        return f"{CARRIED}1" in self.tests


def read_life(run: RunSummary) -> Life:
    """Read the tests of a finished run from its journal; raises ``StoreError`` and ``DataError``."""
    about = run.metrics[RESULTS]
    lines = [line for line in read_lines_of(run.folder / "journal.jsonl", RolloutLine) if line.kind == "rollout"]
    calls = read_calls(run.folder)
    tests = {
        {_NO_BATCHES: BEFORE}.get(row["after"], row["after"]): _read_test(run, row, about["stages"], lines, calls)
        for row in about["tests"]
    }
    return Life(
        run=run,
        order=tuple(about["order"]),
        tests=tests,
        living=_first_attempts(lines, about["learnt_split"]) if run.metrics["steps"] else {},
        spent=_spent(calls),
    )


def _read_test(
    run: RunSummary, row: Record, stages: Record, lines: Sequence[RolloutLine], calls: Sequence[CallCosts]
) -> LifeTest:
    begins = "/".join(filter(None, (Stage.EVALUATE.value, row["scope"]))) + "/"
    found = {
        line.sample: Point(score=line.grade.score, group=line.grade.group)
        for line in lines
        if line.grade and line.context == row["context"] and line.trial == 0 and line.key.startswith(begins)
    }
    points = {name: {sample: found[sample] for sample in stages[name]["tested"] if sample in found} for name in stages}
    asked = [
        call.usage.prompt
        for call in calls
        if call.session.startswith(begins) and f"/{row['context'][:12]}/" in call.session and call.usage.prompt
    ]
    test = LifeTest(
        tokens=row["tokens"],
        items=row["items"],
        asked=fmean(asked) if asked else None,
        points={name: points[name] for name in row["scores"]},
    )
    for name, score in row["scores"].items():
        if not points[name] or abs(test.score(name) - score) > _ROUNDING:
            raise StoreError(
                f"{run.folder}: the journal lacks rollouts of the test {row['after']} of {name}; restore it"
            )
    return test


def _first_attempts(lines: Iterable[RolloutLine], split: str) -> Points:
    """Return the first attempts at samples of the split that were made while the stream was learnt, in one pass."""
    found: dict[str, Point] = {}
    for line in lines:
        of_stream = line.key.startswith(f"{Stage.ADAPT}/{CARRIED}") and line.split == split and line.trial == 0
        if of_stream and line.grade and line.sample not in found:
            found[line.sample] = Point(score=line.grade.score, group=line.grade.group)
    return found


def _spent(calls: Iterable[CallCosts]) -> Mapping[str, int | None]:
    found: dict[str, int | None] = {}
    for call in calls:
        scope = _SCOPE.match(call.session)
        if scope is None or call.stage is not Stage.ADAPT or call.replayed:
            continue
        before, tokens = found.get(scope[1], 0), call.usage.tokens
        found[scope[1]] = None if before is None or tokens is None else before + tokens
    return found


@dataclass(frozen=True, kw_only=True)
class Lives:
    """Runs of one method with one order, by seed."""

    name: str
    order: tuple[str, ...]
    seeds: Mapping[int, Life]

    @property
    def first(self) -> Life:
        """One of the runs."""
        return next(iter(self.seeds.values()))

    def scores(self, tests: Mapping[str, str]) -> Seeds | None:
        """Return the points of stages, each in the named test; ``None`` if a test was not made."""
        lives = self.seeds.items()
        if not tests or any(test not in life.tests for _, life in lives for test in tests.values()):
            return None
        return {
            seed: {
                sample: point
                for stage, test in tests.items()
                for sample, point in life.tests[test].points[stage].items()
            }
            for seed, life in lives
        }

    def mean(self, test: str, stage: str) -> float | None:
        """Mean score over seeds in percent."""
        made = (life.tests[test] for life in self.seeds.values() if test in life.tests)
        some = [one.score(stage) for one in made if stage in one.points]
        return fmean(some) if some else None

    def at(self, number: int) -> str:
        """Name the test after so many stages."""
        return f"{CARRIED}{number}" if number else BEFORE

    @cached_property
    def start(self) -> Mapping[str, str]:
        """The test of each stage before the first one."""
        return dict.fromkeys(self.order, BEFORE)

    @cached_property
    def own(self) -> Mapping[str, str]:
        """The test of each stage right after it."""
        return {stage: self.at(number) for number, stage in enumerate(self.order, 1)}

    @cached_property
    def ahead(self) -> Mapping[str, str]:
        """The test of each stage but the first right before it."""
        return {stage: self.at(number) for number, stage in enumerate(self.order) if number}

    @cached_property
    def fresh(self) -> Mapping[str, str]:
        """The test of each stage but the first, learnt from the initial context."""
        return {stage: f"{FRESH}{number}" for number, stage in enumerate(self.order, 1) if number > 1}

    @cached_property
    def end(self) -> Mapping[str, str]:
        """The test of each stage after the last one."""
        return dict.fromkeys(self.order, self.at(len(self.order)))


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Runs on the same samples, stages and model: the runs of one table. A method that does not learn has no order."""

    title: str
    simulated: bool
    source: str
    lives: Sequence[Lives]

    @property
    def orders(self) -> Sequence[tuple[str, ...]]:
        """The orders in which some method learnt."""
        return [*dict.fromkeys(one.order for one in self.lives if one.first.learns)]


def group_lives(runs: Sequence[RunSummary]) -> list[Stream]:
    """Read the finished lives among runs and group them; raises ``DataError`` if there are none, and ``StoreError``."""
    done = [run for run in runs if run.finished and RESULTS in run.metrics]
    if not done:
        raise DataError("none of these runs is a finished one of mode=lifelong; make one, or name its folder")
    streams: dict[str, list[RunSummary]] = {}
    for run in done:
        streams.setdefault(digest_of(_samples_of(run)), []).append(run)
    return [_stream(some) for some in streams.values()]


def _samples_of(run: RunSummary) -> Sequence[object]:
    stages = {name: sorted(stage["tested"]) for name, stage in sorted(run.metrics[RESULTS]["stages"].items())}
    return [run.task, run.backbone, run.source, run.simulated, run.identity.get("backbone"), stages]


def _stream(runs: Sequence[RunSummary]) -> Stream:
    methods: dict[str, list[RunSummary]] = {}
    for run in runs:
        mode = {key: value for key, value in run.identity["mode"].items() if key not in _ORDER}
        methods.setdefault(digest_of({**run.identity, "mode": mode}), []).append(run)
    firsts = [some[0] for some in methods.values()]
    plain = len({run.method for run in firsts}) == len(firsts)
    labels = [run.method for run in firsts] if plain else differences(firsts).labels
    found = [lives for label, some in zip(labels, methods.values(), strict=True) for lives in _by_order(label, some)]
    names = sorted(runs[0].metrics[RESULTS]["stages"])
    stages = ", ".join(names) if len(names) <= STAGES_SHOWN else f"{len(names)} stages"
    return Stream(
        title=f"{runs[0].task} ({stages}), {runs[0].backbone}",
        simulated=runs[0].simulated,
        source=runs[0].source,
        lives=sorted(found, key=lambda one: (one.first.learns, one.name, one.order)),
    )


def _by_order(label: str, runs: Sequence[RunSummary]) -> Iterator[Lives]:
    lives: dict[tuple[str, ...], dict[int, Life]] = {}
    for run in sorted(runs, key=lambda run: (run.seed, run.attempt)):
        life = read_life(run)
        lives.setdefault(life.order if life.learns else (), {})[run.seed] = life
    for seeds in lives.values():
        yield Lives(name=label, order=next(iter(seeds.values())).order, seeds=seeds)
