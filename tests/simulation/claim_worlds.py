"""Simulated worlds in which the paper's claims are true, half true, without effect or reversed, and their verdicts.

The runs are invented; everything from a run's scores to the verdict is the code of the claims table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from ace_bench.core.statistics import Array
from ace_bench.report.experiments import Experiments, load_experiments
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Point, Points
from ace_bench.report.tables.claim_result import ClaimResult, Verdict
from ace_bench.report.tables.claims import claim_results
from ace_bench.report.tables.results_index import Selection
from tests.simulation.score_worlds import mean_at

WORLDS = {"true": 1.0, "half true": 0.5, "no effect": 0.0, "reversed": -1.0}
COLLAPSING, _COLLAPSE = "true, 20% of cheatsheets collapse", 0.2
SIZES = {"appworld/test_normal": 168, "appworld/test_challenge": 417, "finer/test": 441, "formula/test": 200,
         "ddxplus/test": 1764, "bird_sql/test": 1534}  # fmt: skip
VERDICTS: tuple[Verdict, ...] = ("supported", "equivalent", "inconclusive", "contradicted", "refused")
_KINDS = ("gains", "primary", "stability")
_OWN, _SCENARIO = 1.4, 3
_GRID = np.linspace(-9, 9, 400)
_MEANS = mean_at(_GRID)
"""Mean scores by log odds."""


@dataclass(frozen=True, kw_only=True)
class World:
    """How much of each effect of the paper is there, the seeds of each run, and the spread over seeds in points.

    A run of Dynamic Cheatsheet collapses with the probability ``collapse``, which costs it 15 points.
    """

    share: float
    seeds: int
    spread: float = 1.5
    seed: int = 0
    collapse: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TrueMeans:
    """A run's true mean of each metric, by its name, in percent for scores."""

    split: str
    adapts: bool
    means: Mapping[str, float]


class _Run(RunSummary):
    """A run whose numbers are drawn."""

    true: TrueMeans
    world: World
    plan: int
    collapsed = False
    processes = ()

    def value(self, metric: str) -> float | None:
        """Return a metric; scores as the mean of their points, costs 5% off their true value."""
        if metric in self.drawn:
            return 100 * float(np.mean([point.score for point in self.drawn[metric].values()]))
        if metric == "n":
            return SIZES.get(self.true.split)
        mean = self.true.means.get(metric)
        return None if mean is None else mean * float(np.exp(0.05 * self._rng(1).normal()))

    def points(self, metric: str) -> Points | None:
        """Return the scores behind a metric."""
        return self.drawn.get(metric)

    @cached_property
    def drawn(self) -> Mapping[str, Points]:
        """Scores by metric and sample: right or wrong, scenarios of three in AppWorld."""
        scores = {name: mean for name, mean in self.true.means.items() if name in _SCORES}
        size, rng = SIZES.get(self.true.split, 0), self._rng(0)
        group = _SCENARIO if self.true.split.startswith("appworld") else 1
        shared = np.random.default_rng([self.world.seed, len(self.true.split), size]).normal(size=(2, size))
        difficulty = _OWN * np.sqrt(0.5) * (shared[0] + np.repeat(shared[1][: size // group], group))
        quality = self.world.spread / 100 * rng.normal() if self.true.adapts else 0.0
        quality -= 0.15 * self.collapsed
        fit = 0.7 * np.random.default_rng([self.world.seed, self.plan]).normal(size=size)
        points: dict[str, Points] = {}
        for name, mean in scores.items():
            places = range(0, size, group) if name == "sgc" else _PARTS.get(name, range(size))
            level = float(np.interp(np.clip(mean / 100 + quality, 0.01, 0.99), _MEANS, _GRID))
            odds = level + (difficulty + fit)[places] + 0.5 * rng.normal(size=len(places))
            points[name] = _points(name, rng.random(len(places)) < expit(odds), group)
        return points

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.world.seed, self.plan, self.seed, stream])


_SCORES = ("accuracy", "tgc", "sgc", "judge", "judge_simple", "judge_moderate", "judge_challenging")
_PARTS = {"judge_simple": range(925), "judge_moderate": range(925, 1389), "judge_challenging": range(1389, 1534)}


class WorldRuns(Selection):
    """Runs of all plans with the numbers of a world, in the place of those of a results folder."""

    def __init__(self, experiments: Experiments, world: World, model: str) -> None:
        """Read the true numbers of each run from the paper's tables about a model."""
        self._cells = {}
        self._world = world
        self._told = told_runs(experiments, world.share, model)

    def find(self, planned: PlannedRun) -> list[RunSummary]:
        """Return a run for each seed; one that does not adapt has one."""
        if planned not in self._told:
            return []
        number, true = self._told[planned]
        runs = [_run(true, self._world, number, seed) for seed in range(self._world.seeds if true.adapts else 1)]
        if "method=dc" in planned.overrides:
            rng = np.random.default_rng([self._world.seed, number])
            for run in runs:
                run.collapsed = rng.random() < self._world.collapse
        return runs

    def equal_seeds(self, planned: PlannedRun, runs: Collection[RunSummary]) -> int:
        """Return that each plan has the seeds that it needs."""
        del planned, runs
        return 0

    def deviations(self, planned: PlannedRun, model: str) -> tuple[str, ...]:
        """Return nothing: these are the paper's settings."""
        del planned, model
        return ()


def told_runs(experiments: Experiments, share: float, model: str) -> Mapping[PlannedRun, tuple[int, TrueMeans]]:
    """Return what is true of each planned run: between its reference row's numbers and its own, by ``share``."""
    numbers: dict[PlannedRun, dict[str, float]] = {}
    kinds: dict[PlannedRun, tuple[str, bool]] = {}
    for name, table in experiments.tables.items():
        if table.model != model:
            continue
        rows = (row for row in table.rows if row not in table.not_reproducible and not table.rows[row].ours)
        for row, column in product(rows, table.columns):
            spec = table.columns[column]
            if not spec.metric or spec.ours or (reported := table.cell(row, column).value) is None:
                continue
            base = table.cell(table.against or next(iter(table.rows)), column).value
            true = reported if base is None else _between(base, reported, share, cost=spec.unit != "percent")
            planned = experiments.run(name, row, column)
            numbers.setdefault(planned, {}).setdefault(experiments.metric(name, row, column), true)
            if spec.split or planned not in kinds:
                kinds[planned] = (f"{spec.task}/{spec.split}", table.rows[row].adapts is not None)
    return {
        planned: (number, TrueMeans(split=kinds[planned][0], adapts=kinds[planned][1], means=means))
        for number, (planned, means) in enumerate(numbers.items())
    }


def world_results(world: World) -> list[ClaimResult]:
    """Return the claims table of a world."""
    experiments = load_experiments()
    runs = {model: WorldRuns(experiments, world, model) for model in experiments.models if model}
    return claim_results(experiments, runs[experiments.table("1").model], runs)


def verdicts_of(results: Sequence[ClaimResult]) -> Mapping[str, Counter[Verdict]]:
    """Count the verdicts: of gains (claims of scores with a direction), the primary among them, and of stability."""
    scores = [result for result in results if result.comparison]
    return {
        "gains": Counter(result.verdict for result in scores if result.claim.within is None),
        "primary": Counter(result.verdict for result in scores if result.claim.primary),
        "stability": Counter(result.verdict for result in scores if result.claim.within is not None),
    }


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The verdicts on one table of a world: counted by kind, and of each claim about scores."""

    world: str
    seeds: int
    counts: Mapping[str, Counter[Verdict]]
    verdicts: Mapping[str, Verdict]


def judge_worlds(tables: int) -> list[Judged]:
    """Judge tables of the five worlds, with three and with five seeds."""
    with ProcessPoolExecutor() as pool:
        return [*pool.map(_judge, product((*WORLDS, COLLAPSING), (3, 5), range(tables)))]


def verdicts_page(judged: Sequence[Judged]) -> str:
    """Count the verdicts in all worlds, as Markdown: of gains, primary gains and claims of stability."""
    lines = [f"|effects|seeds|{'|'.join(VERDICTS)}|", "|---|---|" + "---|" * len(VERDICTS)]
    for name, seeds in product((*WORLDS, COLLAPSING), (3, 5)):
        chosen = [table.counts for table in judged if (table.world, table.seeds) == (name, seeds)]
        cells = ("/".join(str(sum(one[kind][verdict] for one in chosen)) for kind in _KINDS) for verdict in VERDICTS)
        lines.append(f"|{name}|{seeds}|{'|'.join(cells)}|")
    return "\n".join(lines)


def verdicts_by_claim(judged: Sequence[Judged]) -> list[Mapping[str, object]]:
    """Return a line of CSV for each claim, world and number of seeds: how often each verdict was given."""
    counts: dict[tuple[str, str, int], Counter[Verdict]] = {}
    for table in judged:
        for claim, verdict in table.verdicts.items():
            counts.setdefault((claim, table.world, table.seeds), Counter())[verdict] += 1
    return [
        {"claim": claim, "world": world, "seeds": seeds, **{verdict: count[verdict] for verdict in VERDICTS}}
        for (claim, world, seeds), count in sorted(counts.items())
    ]


def _judge(place: tuple[str, int, int]) -> Judged:
    name, seeds, seed = place
    collapse = _COLLAPSE if name == COLLAPSING else 0.0
    results = world_results(World(share=WORLDS.get(name, 1.0), seeds=seeds, seed=seed, collapse=collapse))
    verdicts = {f"{one.claim.label}: {one.claim.than}": one.verdict for one in results if one.comparison}
    return Judged(world=name, seeds=seeds, counts=verdicts_of(results), verdicts=verdicts)


def _run(true: TrueMeans, world: World, plan: int, seed: int) -> RunSummary:
    kind = "playbook" if true.adapts else "none"
    metrics: dict[str, Any] = {"context": {"kind": kind, "items": 1}, "steps": 1 if true.adapts else 0}
    run = _Run(
        folder=Path(f"{plan}/{seed}"), task="", method="", backbone="", mode="", labels="", seed=seed, source="real",
        simulated=False, digest="", identity={}, metrics=metrics,
    )  # fmt: skip
    run.__dict__.update(true=true, world=world, plan=plan)
    return run


def _between(base: float, own: float, share: float, *, cost: bool) -> float:
    if cost:  # a reversed saving costs as many times more
        return float(base * (own / base) ** share) if base else own
    return base + share * (own - base)


def _points(metric: str, right: Array, group: int) -> Points:
    groups = [f"{index // group}" if group > 1 and metric != "sgc" else "" for index in range(len(right))]
    return {str(index): Point(score=float(right[index]), group=name) for index, name in enumerate(groups)}
