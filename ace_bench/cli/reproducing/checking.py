"""Rejects settings that do not fit the requested runs before any of them starts; leaves out runs that are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from rich.progress import track

from ace_bench.cli.reproducing.reproduction import RunStates
from ace_bench.cli.reproducing.request import FIGURES, Job, ReproduceRequest
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders, options, require
from ace_bench.report.experiments import with_needs
from ace_bench.report.planned import Compose, PlannedRun, Setting, left_out, read_setting, run_overrides
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.composing import with_commit_apart
from ace_bench.runners.override_help import suggestions


def check_settings(jobs: Iterable[Job], compose: Compose) -> None:
    """Compose every run with its settings.

    A setting must fit all runs, or at least one run of the method that it names. Raises ``ConfigError`` for the first
    setting that does not.
    """
    plans = list(dict.fromkeys((job.planned, job.extra) for job in jobs))
    for extra in dict.fromkeys(extra for _, extra in plans):
        _check_extra([run for run, run_extra in plans if run_extra == extra], extra, compose)


def check_packages(request: ReproduceRequest) -> None:
    """Raise ``ConfigError`` if what comes after the runs needs a package that is not installed."""
    if any(name in FIGURES for name in request.names):
        require("drawing figures", "matplotlib", "pandas", otherwise="ask for tables only, which need no package")


def _check_extra(runs: Sequence[PlannedRun], extra: Sequence[str], compose: Compose) -> None:
    """Check the settings of runs that are requested with the same ones."""
    settings = sorted(map(read_setting, extra), key=lambda setting: not setting.chooses)
    users = {setting: [run for run in runs if setting.is_for(run.names)] for setting in settings}
    for setting in settings:
        if not users[setting]:
            raise ConfigError(_for_none(setting, runs))
    refused = {run: left_out(run, extra, compose) for run in runs}
    for setting, setting_users in users.items():
        takers = [run for run in setting_users if setting.override not in refused[run]]
        if not takers:
            reason = _reason(setting, run_overrides(setting_users[0], extra, compose), compose)
            raise ConfigError(f"{setting} cannot be composed with any run asked for: {reason}")
        if not setting.only and len(takers) < len(runs):
            unfit = next(run for run in runs if run not in takers)
            methods = dict.fromkeys(run.option("method") for run in takers)
            raise ConfigError(
                f"{setting} fits only {len(takers)} of the {len(runs)} runs asked for, not "
                f"{' '.join(unfit.overrides)}; give it to the runs of a method that have it: "
                f"{' or '.join(f'{method}:{setting}' for method in methods)}"
            )


def _for_none(setting: Setting, runs: Sequence[PlannedRun]) -> str:
    methods, tasks = (list(options(group, config_folders())) for group in ("method", "task"))
    names = dict.fromkeys(filter(None, chain.from_iterable(zip_longest(*(run.names for run in runs)))))
    if setting.only not in (*methods, *tasks, *options("backbone", config_folders())):
        return (
            f"{setting} names no method or task; METHOD:SETTING takes one of {', '.join(methods)}; "
            f"TASK:SETTING takes one of {', '.join(tasks)}; BACKBONE:SETTING one that a row has for a role"
        )
    return f"{setting} is for no run asked for; give it to one of {', '.join(names)}, or leave it out"


def _reason(setting: Setting, taken: Sequence[str], compose: Compose) -> str:
    """Return why a setting does not go with the overrides of a run."""
    hints = suggestions(config_folders(), with_commit_apart([*taken, setting.override]))
    if hints:
        return hints[-1].partition(": ")[2]
    try:
        compose([*taken, setting.override])
    except ConfigError as error:
        return str(error.__cause__ or error).partition("\n")[0]
    return "it does not go with the other settings"


def refused(request: ReproduceRequest, jobs: Sequence[Job], index: ResultsIndex) -> Mapping[Job, str]:
    """Return the runs that the program refuses, each with the reason. Nothing is sent or started.

    Only experiments that list methods have such runs: any other run that is refused is a mistake. Raises
    ``ConfigError`` if no run is left.
    """
    experiments = index.experiments
    names = [name for name in request.names if name in experiments.combined]
    listed = {planned for name in names for planned in experiments.runs(name)}
    if not listed:
        return {}
    states = RunStates(request.results, index.compose)
    reasons = {}
    for job in track(jobs, "Checking", console=Console(stderr=True), transient=True):
        if job.planned in listed and states.run(job) is None:
            reason = index.refusal(run_overrides(job.planned, job.extra, index.compose))
            if reason:
                reasons[job] = reason
    if reasons and len(reasons) == len(jobs):
        raise ConfigError(f"the program refuses all runs asked for: {next(iter(reasons.values()))}")
    return reasons


def without_equal_seeds(jobs: Sequence[Job], index: ResultsIndex) -> tuple[list[Job], list[str]]:
    """Return the jobs whose requests differ, and a sentence on the others.

    A run that draws nothing by its seed keeps its first seed, and the seeds whose contexts other runs start from.
    """
    seeds: dict[tuple[PlannedRun, tuple[str, ...]], list[Job]] = {}
    for job in jobs:
        seeds.setdefault((job.planned, job.extra), []).append(job)
    repeated = {key: same for key, same in seeds.items() if len(same) > 1}
    equal = [same for (planned, extra), same in repeated.items() if not index.draws_for(planned, extra)]
    left_out = {job for same in equal for job in same[1:]}
    kept = [job for job in jobs if job not in left_out]
    left_out -= {replace(job, planned=run) for job in kept for run in with_needs(job.planned)}
    if not left_out:
        return [*jobs], []
    note = (
        f"one seed, {len(equal)} run{'s' * (len(equal) != 1)}: greedy, nothing is drawn, so others would ask the same"
    )
    return [job for job in jobs if job not in left_out], [note]


def by_reason(reasons: Mapping[Job, str]) -> Iterator[str]:
    """Say for each reason how many runs are left out."""
    for reason, count in Counter(reasons.values()).items():
        yield f"left out, {count} run{'s' * (count != 1)}: {reason}"
