"""Measures of lives, with intervals: gain, transfer, forgetting and plasticity. docs/lifelong.md defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from ace_bench.report.statistics import Interval, Seeds, compare, mean_score, score_interval
from ace_lifelong.lives import Lives
from ace_report.tables.grids import signed_bounds

_UNKNOWN = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A score in percent, or a difference in points, over samples and seeds."""

    value: float
    interval: Interval | None = None
    signed: bool = True

    def __str__(self) -> str:
        if self.signed:
            return f"{self.value:+.1f}{signed_bounds(self.interval)}"
        bounds = f" [{self.interval.low:.1f}, {self.interval.high:.1f}]" if self.interval else ""
        return f"{self.value:.1f}{bounds}"


def score(scores: Seeds | None) -> Measure | None:
    """Return a mean score."""
    if scores is None or not all(scores.values()):
        return None
    return Measure(value=mean_score(scores), interval=score_interval(scores), signed=False)


def difference(ours: Seeds | None, base: Seeds | None, *, base_adapts: bool = True) -> Measure | None:
    """Return ours less the base, paired by sample and seed."""
    if ours is None or base is None:
        return None
    found = compare(ours, base, base_adapts=base_adapts)
    return Measure(value=found.difference, interval=found.interval)


def measures_of(lives: Lives) -> Mapping[str, Measure | None]:
    """Return the measures of a method with one order, by name."""
    start, end = lives.scores(lives.start), lives.scores(lives.end)
    living = {seed: life.living for seed, life in lives.seeds.items()}
    seen = {stage: test for stage, test in lives.end.items() if stage != lives.order[-1]}
    same = start is not None and all(living[seed].keys() == points.keys() for seed, points in start.items())
    return {
        "start": score(start),
        "living": score(living),
        "end": score(end),
        "living gain": difference(living, start, base_adapts=False) if same else None,
        "gain": difference(end, start, base_adapts=False),
        "backward transfer": difference(lives.scores(seen), lives.scores({one: lives.own[one] for one in seen})),
        "forgetting": forgetting(lives),
        "forward transfer": difference(
            lives.scores(lives.ahead), lives.scores(dict.fromkeys(lives.ahead, "before")), base_adapts=False
        ),
        "own - fresh": difference(
            lives.scores({one: lives.own[one] for one in lives.fresh}), lives.scores(lives.fresh)
        ),
    }


def forgetting(lives: Lives, *stages: str) -> Measure | None:
    """Return the best score of a stage after any stage but the last, less its last score; without interval.

    A mean over the samples of ``stages``, by default of all but the last one, and over seeds.
    """
    if not lives.first.learns:
        return None
    last, some = len(lives.order), stages or lives.order[:-1]
    sizes = [len(lives.first.tests[lives.at(last)].points[stage]) for stage in some]
    falls = [
        max(life.tests[lives.at(number)].score(stage) for number in range(1, last))
        - life.tests[lives.at(last)].score(stage)
        for life in lives.seeds.values()
        for stage in some
    ]
    return Measure(value=fmean(falls, weights=sizes * len(lives.seeds)))
