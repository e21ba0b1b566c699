"""Which folders are the same run, and whether they agree: copies count once, and contradictions have no result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.report.folders import Problem
from ace_bench.store.damage import lasting_metrics

if TYPE_CHECKING:
    from ace_bench.report.records import RunSummary

CONTRADICTORY = "contradictory"
"""The state of a finished run whose folders have different results."""


@dataclass(frozen=True, kw_only=True)
class SameRuns:
    """The runs that count, the further copies of some of them, and a sentence for each contradiction."""

    runs: tuple[RunSummary, ...]
    copies: tuple[RunSummary, ...]
    problems: tuple[Problem, ...]


def settle_same_runs(runs: Sequence[RunSummary]) -> SameRuns:
    """Compare the finished folders that are the same run by their records: digest, seed and repetition.

    The first of equal ones counts. Where they differ, none shows its result: nothing says which of them is right.
    """
    folders: defaultdict[tuple[str, int, int], list[RunSummary]] = defaultdict(list)
    for run in runs:
        if run.finished:
            folders[run.digest, run.seed, run.attempt].append(run)
    copies: dict[Path, RunSummary] = {}
    contradictory: dict[Path, RunSummary] = {}
    problems = list[Problem]()
    for first, *repeated in folders.values():
        results = [lasting_metrics(run.metrics) for run in (first, *repeated)] if repeated else []
        if all(result == results[0] for result in results):
            copies |= {run.folder: run for run in repeated}
            continue
        reason = (
            f"these folders are the same run (digest {first.digest[:12]}, seed {first.seed}) and have different "
            f"results, so none is shown: {', '.join(str(run.folder) for run in (first, *repeated))}"
        )
        problems.append(Problem(folder=first.folder, reason=reason))
        for run in (first, *repeated):
            contradictory[run.folder] = replace(run, metrics={}, state=CONTRADICTORY, reason=reason)
    kept = (contradictory.get(run.folder, run) for run in runs if run.folder not in copies)
    return SameRuns(runs=tuple(kept), copies=tuple(copies.values()), problems=tuple(problems))
