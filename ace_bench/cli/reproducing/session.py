"""One call of `ace-bench reproduce`, from its options to its exit status, with its lists of results and of costs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from ace_bench.cli.arguments import add_column
from ace_bench.cli.reproducing.checking import by_reason, check_packages, check_settings, refused, without_equal_seeds
from ace_bench.cli.reproducing.cost_table import cost_table
from ace_bench.cli.reproducing.manifest import Manifest
from ace_bench.cli.reproducing.reproduction import Reproduction
from ace_bench.cli.reproducing.request import (
    EMBEDDED,
    check_measurements,
    count,
    jobs,
    read_request,
)
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.report.experiments import Experiments
from ace_bench.report.narrowing import choice_words, narrowed
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.checking import RunChecks
from ace_bench.runners.planning import Composer
from ace_bench.runners.schedule import cores
from ace_bench.runners.workers import Workers
from ace_bench.store.processes import command_of


def reproduce(options: argparse.Namespace) -> int:
    """List, estimate, show or make runs. Returns the exit status. Raises ``AceBenchError`` for a mistake."""
    console = Console(markup=False, highlight=False, soft_wrap=True)
    compose = Composer(config_folders())
    checks = RunChecks(compose)
    index = ResultsIndex(results=Path("results"), compose=compose, refusal=checks.refusal, draws=checks.draws)
    if options.list:
        console.print(listing(index.experiments))
        return 0
    refuse_secret_arguments(options.settings)
    request = read_request(options.settings, index.experiments, differences=options.differences, looks=options.looks)
    experiments, names = narrowed(index.experiments, request.names, request.chosen)
    if without := [name for name in request.names if name not in names]:
        console.print(f"left out: {', '.join(without)}: no run there has {' '.join(choice_words(request.chosen))}")
    index, request = replace(index, experiments=experiments), replace(request, names=names)
    wanted = jobs(request, index.experiments)
    check_settings(wanted, index.compose)  # mistakes are reported before anything starts
    check_measurements(request, index.experiments, index.compose)
    wanted, with_one_seed = without_equal_seeds(wanted, index)
    left_out = refused(request, wanted, index)
    wanted = [job for job in wanted if job not in left_out]
    for line in (*with_one_seed, *by_reason(left_out)):
        console.print(line)
    if options.estimate:
        if not wanted:
            raise ConfigError("no runs are asked for, and the cost of a measurement cannot be estimated")
        console.print(*cost_table(wanted, index, compose, request.results), sep="\n")
        return 0
    # All where calls are limited; else one a core where runs compute, and one where they call a server.
    limited = any(
        word.startswith("max_calls_in_flight=") and word != "max_calls_in_flight=null" for word in request.overrides
    )
    usual = cores() if request.backbone == EMBEDDED else max(1, len(wanted)) if limited else 1
    workers = options.jobs or usual
    sweep = command_of(options.settings, name="reproduce")
    made_by = Workers(workers, sweep=sweep)
    reproduction = Reproduction(request, wanted, index, console, made_by)
    if options.dry_run:
        reproduction.show()
    elif Manifest(request).holds and not reproduction.unfinished(continue_begun=True):
        runs = f"all {len(wanted)} runs are finished, and " if wanted else ""
        console.print(
            f"Nothing to do: {runs}the tables and figures in {request.results} are those that this version makes of "
            "them."
        )
        return 0
    check_packages(request)
    unfinished = reproduction.unfinished(continue_begun=not options.only_missing)
    notes = checks.check((reproduction.candidate(job) for job in unfinished), results=request.results)
    for note in notes:
        console.print(note, style="yellow")
    if options.dry_run:
        return 0
    return reproduction.complete(unfinished)


def listing(experiments: Experiments) -> Table:
    """Return the paper's results and the documents' experiments with the number of runs that each needs."""
    table = Table(box=None)
    for heading in ("", "result", "model", "runs"):
        add_column(table, heading)
    for name, experiment in experiments.by_name.items():
        setting = name.replace("_", "=") if name.startswith("figure_") else f"table={name}"
        setting = f"experiment={name}" if name in experiments.others else setting
        most = "at most " * (name in experiments.combined)
        runs = most + str(count(name, experiments) or "none: others' systems")
        table.add_row(
            setting, experiment.title, experiment.model, "none: a measurement" if experiment.measure else runs
        )
    return table
