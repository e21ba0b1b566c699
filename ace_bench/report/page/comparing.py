"""Several runs side by side, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Points, compare


def comparison(runs: Mapping[str, RunSummary]) -> Record:
    """Return scores by run and sample, and the paired test of each pair of runs, or why there is none.

    Runs are named by their keys. Each run is one context: nothing is said about other seeds. The page corrects the
    p-values for the pairs that it shows.
    """
    points = {key: _points(run) for key, run in runs.items()}  # the error for a damaged run
    pairs = [{"ours": ours, "base": base, **_pair(points[ours], points[base])} for base, ours in combinations(runs, 2)]
    scores = {
        key: {} if found is None or isinstance(found, str) else {sample: one.score for sample, one in found.items()}
        for key, found in points.items()
    }
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
