"""Runs of an experiment that lists methods which the program refuses: they are left out, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.progress import track

from ace_bench.cli.reproducing.request import Job, ReproduceRequest
from ace_bench.cli.reproducing.run_status import RunStates
from ace_bench.core.errors import ConfigError
from ace_bench.report.planned import run_overrides
from ace_bench.report.tables.results_index import ResultsIndex


def refused(request: ReproduceRequest, jobs: Sequence[Job], index: ResultsIndex) -> Mapping[Job, str]:
    """Return the runs that the program refuses, each with the reason; nothing is sent or started.

    Only experiments that list methods have such runs: any other run that is refused is a mistake. Raises
    ``ConfigError`` if no run is left.
    """
    experiments = index.experiments
    names = [name for name in request.names if name in experiments.combined]
    listed = {planned for name in names for planned in experiments.runs(name)}
    if not listed:
        return {}
    states = RunStates(request.results, index.compose)
    found = {}
    for job in track(jobs, "Checking", console=Console(stderr=True), transient=True):
        if job.planned in listed and states.run(job) is None:
            reason = index.refusal(run_overrides(job.planned, job.extra, index.compose))
            if reason:
                found[job] = reason
    if found and len(found) == len(jobs):
        raise ConfigError(f"the program refuses all runs asked for: {next(iter(found.values()))}")
    return found


def by_reason(found: Mapping[Job, str]) -> Iterator[str]:
    """Say for each reason how many runs are left out."""
    for reason, count in Counter(found.values()).items():
        yield f"left out, {count} run{'s' * (count != 1)}: {reason}"
