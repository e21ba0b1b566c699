"""Several runs side by side, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.statistics import holm
from ace_bench.core.types import Record
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Points, compare


def comparison(runs: Sequence[RunSummary]) -> Record:
    """Return scores by run and sample, and the paired test of each pair of runs, or why there is none.

    The p-values of all pairs are one family, corrected by Holm's method. Each run is one context: nothing is said about
    other seeds.
    """
    points = [_points(run) for run in runs]  # the error for a damaged run
    pairs: list[dict[str, Any]] = [
        {"ours": ours, "base": base, **_pair(points[ours], points[base])}
        for base, ours in combinations(range(len(runs)), 2)
    ]
    scores = [
        {} if of_run is None or isinstance(of_run, str) else {sample: point.score for sample, point in of_run.items()}
        for of_run in points
    ]
    tested = [pair for pair in pairs if "p" in pair]
    for pair, p in zip(tested, holm([pair["p"] for pair in tested]), strict=True):
        pair |= {"p_holm": p, "noise": p >= 0.05, "pairs": len(tested)}
    return {"scores": scores, "pairs": pairs}


def _points(run: RunSummary) -> Points | str | None:
    try:
        return run.points(run.metrics["headline"]["metric"]) if run.finished else None
    except StoreError as error:
        return str(error)


def _pair(ours: Points | str | None, base: Points | str | None) -> Record:
    for points in (ours, base):
        if isinstance(points, str):
            return {"problem": points}
    assert not isinstance(ours, str)
    assert not isinstance(base, str)
    if ours is None or base is None:
        return {"problem": "a run has no scores by sample: it is not finished, or its metric is not a mean"}
    try:
        found = compare({0: ours}, {0: base})
    except DataError as error:
        return {"problem": str(error)}
    record: Record = msgspec.to_builtins(found)
    return record
