"""What a page says of several runs: results, costs, the settings in which they differ, and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.differences import CHOICES, Differences, differences, value_text
from ace_bench.report.progress import Progress
from ace_bench.report.records import Damaged, RunSummary
from ace_bench.report.statistics import Points, compare

_ABOUT = (*CHOICES, "labels", "seed", "source", "simulated", "state", "reason", "attempt")
_SAMPLED = 8
"""Characters of a digest that tells sets of samples apart."""
_TOTAL = "total"
_FOLDER = "folder"
"""Tells copies of a run apart; every row has its own anyway."""


def listing(runs: Mapping[str, Record], summaries: Sequence[RunSummary], damaged: Sequence[Damaged]) -> Record:
    """Return what a page says of all runs: ``runs`` are the rows of the summaries by key, in the same order.

    ``settings`` are those in which the runs differ, as pairs of path and short name. ``values`` of a run are in their
    order, ``None`` where it has no such setting.
    """
    differ = differences(summaries)
    columns = [path for path in differ.names if path != _FOLDER]
    rows = [
        {
            "key": key,
            **row,
            "label": _label(differ, place, run, row["folder"]),
            "values": [differ.text(place, path) if path in differ.values[place] else None for path in columns],
        }
        for place, (run, (key, row)) in enumerate(zip(summaries, runs.items(), strict=True))
    ]
    return {
        "common": differ.common,
        "settings": [(path, differ.names[path]) for path in columns],
        "runs": rows,
        "unreadable": [{"folder": str(one.folder), "reason": one.reason} for one in damaged],
    }


def _label(differ: Differences, place: int, run: RunSummary, folder: str) -> str:
    """Return the label of a run; copies of a run are named by the folder as the page shows it."""
    label = differ.labels[place]
    return label.replace(value_text(str(run.folder)), folder) if _FOLDER in differ.names else label


def run_row(run: RunSummary, folder: str, changed: float | None = None) -> Record:
    """Return what is listed of one run, without reading journal or calls. ``changed`` is a Unix time.

    Runs with the same ``sampled`` were tested on the same samples, as far as the settings say; only their scores
    belong into one column.
    """
    about = {name: getattr(run, name) for name in _ABOUT}
    row = {"about": about, "folder": folder, "changed": changed, "live": None, "result": None}
    return {**row, "result": _result(run)} if run.finished else row


def with_progress(row: Record, progress: Progress) -> Record:
    """Add the progress of an unfinished run; a damaged one has none."""
    try:
        return {**row, "live": progress.record()}
    except StoreError:
        return row


def _result(run: RunSummary) -> Record:
    metrics = run.metrics
    headline = metrics["headline"]
    tokens, cache = metrics["tokens"][_TOTAL], metrics["cache"][_TOTAL]
    return {
        **headline,
        "sampled": digest_of([run.contents.get("data"), run.identity.get("limit"), headline["n"]])[:_SAMPLED],
        "faults": sum(sum(kinds.values()) for kinds in metrics["faults"].values()),
        "context": metrics["context"],
        "steps": metrics["steps"],
        "calls": sum(sum(roles.values()) for roles in metrics["calls"].values()),
        "in": tokens["in"],
        "out": tokens["out"],
        "cached": cache["cached_tokens"],
        "usd": metrics["usd"][_TOTAL],
        "wall": sum(part["wall_s"] for part in metrics["timing"].values()),
    }


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
    return {key: value for key, value in msgspec.to_builtins(found).items() if key != "estimate"}
