"""One call of ``ace-bench reproduce``, from its options to its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ace_bench.cli.reproducing.checking import check_packages, check_settings
from ace_bench.cli.reproducing.left_out import by_reason, refused
from ace_bench.cli.reproducing.listing import estimates, listing
from ace_bench.cli.reproducing.manifest import Manifest
from ace_bench.cli.reproducing.measuring import check_measurements
from ace_bench.cli.reproducing.reproduction import Reproduction
from ace_bench.cli.reproducing.request import EMBEDDED, Job, ReproduceRequest, jobs, read_request
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.call_slots import call_limit, slots_for_runs
from ace_bench.runners.checking import RunChecks
from ace_bench.runners.planning import Composer
from ace_bench.runners.schedule import cores
from ace_bench.runners.workers import Workers


def reproduce(options: argparse.Namespace) -> int:
    """List, estimate, show or make runs; returns the exit status. Raises ``AceBenchError`` for a mistake."""
    console = Console(highlight=False, soft_wrap=True)
    compose = Composer(config_folders())
    checks = RunChecks(compose)
    index = ResultsIndex(results=Path("results"), compose=compose, refusal=checks.refusal)
    if options.list:
        console.print(listing(index.experiments))
        return 0
    refuse_secret_arguments(options.settings)
    request = read_request(options.settings, index.experiments, differences=options.differences)
    if request.methods or request.tasks:
        index = replace(index, methods=request.methods, tasks=request.tasks)
    wanted = jobs(request, index.experiments)
    check_settings(wanted, index.compose)  # mistakes are reported before anything starts
    check_measurements(request, index.experiments, index.compose)
    left_out = refused(request, wanted, index)
    wanted = [job for job in wanted if job not in left_out]
    for line in by_reason(left_out):
        console.print(line, markup=False)
    if options.estimate:
        if not wanted:
            raise ConfigError("no runs are asked for, and the cost of a measurement cannot be estimated")
        console.print(
            *estimates(wanted, index, compose, rehearsed=bool(set(request.names) & set(index.experiments.combined))),
            sep="\n",
        )
        return 0
    slots = call_limit(request.overrides)
    workers = options.jobs or _runs_at_a_time(request, len(wanted), slots)
    reproduction = Reproduction(request, wanted, index, console, Workers(workers, captures=workers > 1))
    if options.dry_run:
        reproduction.show()
    elif Manifest(request).holds and not reproduction.unfinished(continue_begun=True):
        console.print(_nothing_to_do(wanted, request), markup=False)
        return 0
    check_packages(request)
    unfinished = reproduction.unfinished(continue_begun=not options.only_missing)
    checks.check((reproduction.candidate(job) for job in unfinished), results=request.results)
    if options.dry_run:
        return 0
    with slots_for_runs(slots):
        return reproduction.complete(unfinished)


def _runs_at_a_time(request: ReproduceRequest, runs: int, slots: int | None) -> int:
    """Return all where calls are limited; else one a core where runs compute, and one where they call a server."""
    if request.backbone == EMBEDDED:
        return cores()
    return max(1, runs) if slots else 1


def _nothing_to_do(wanted: Sequence[Job], request: ReproduceRequest) -> str:
    runs = f"all {len(wanted)} runs are finished, and " if wanted else ""
    return (
        f"Nothing to do: {runs}the tables and figures in {request.results} are those that this version makes of them."
    )
