"""Makes the runs of a request in the order of their dependencies, then their tables and figures."""

from __future__ import annotations

import shlex
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.table import Table

from ace_bench.cli.arguments import add_column
from ace_bench.cli.reproducing.estimating import chain_of, free_memory, memory_of
from ace_bench.cli.reproducing.manifest import Manifest
from ace_bench.cli.reproducing.request import (
    EMBEDDED,
    FIGURES,
    Job,
    ReproduceRequest,
    count,
    measured_tables,
    measurements,
    paper_results,
)
from ace_bench.core.console import Console
from ace_bench.core.encoding import digest_of
from ace_bench.core.program import command_line
from ace_bench.report.conditions import Variant
from ace_bench.report.configurations import Configurations
from ace_bench.report.figures.write import write_figures
from ace_bench.report.histories import write_around_fall
from ace_bench.report.matching import ModelNames, Runs, SimilarRuns
from ace_bench.report.narrowing import choice_words
from ace_bench.report.planned import TESTED, Compose, Need, PlannedRun, quote, run_overrides
from ace_bench.report.records import RunSummary, find_runs
from ace_bench.report.tables.formats import Page
from ace_bench.report.tables.results_index import ResultsIndex, Wanted
from ace_bench.report.tables.write import CLAIMS, TableFiles, write_tables
from ace_bench.runners.board import Board
from ace_bench.runners.checking import Candidate
from ace_bench.runners.host import EXIT_INTERRUPTED
from ace_bench.runners.schedule import Batch, Overrides, Schedule
from ace_bench.runners.workers import Outcome, Workers, outcome_in_words
from ace_bench.store.code import CodeReader, changed_modules
from ace_bench.store.files import write_files
from ace_bench.store.processes import last_code

NAME = "paper"
"""The name that all these runs have in common."""


class State(StrEnum):
    """How a run stands.

    ``waiting`` means that it needs a context of an unfinished run. ``needless`` means that this run never collapsed, so
    there is no context. ``changed`` means that it is finished, and code that decides its result has changed since. It
    is checked when it runs again.
    """

    FINISHED = "finished"
    CHANGED = "changed"
    BEGUN = "begun"
    MISSING = "missing"
    WAITING = "waiting"
    NEEDLESS = "needless"


class RunStates:
    """The runs in a results folder at one moment."""

    def __init__(self, results: Path, compose: Compose, plans: Sequence[PlannedRun] = ()) -> None:
        """Read all runs under ``results``. ``plans`` are those that a run may belong to."""
        self._results = results
        self._compose = compose
        self._code = CodeReader()
        runs = find_runs(results).runs
        configurations = Configurations(compose)
        self._runs = Runs(runs, configurations)
        self._similar = SimilarRuns(runs, plans, configurations, ModelNames((), compose))

    def run(self, job: Job) -> RunSummary | None:
        """Return the run on disk."""
        return self._runs.find(job.planned, seed=job.seed, extra=job.extra)

    def of(self, job: Job) -> State:
        """Return the state of a run. Raises ``ConfigError`` if an override does not fit."""
        run = self.run(job)
        if run is not None:
            if not run.finished:
                return State.BEGUN
            code = self._code.code_of(self._compose([*(self._overrides(job) or ()), f"seed={job.seed}"]))
            return State.CHANGED if changed_modules(last_code(run.processes), code.modules) else State.FINISHED
        if self._overrides(job) is None:
            return State.WAITING
        return State.MISSING if all(self._make_contexts(job, need) for need in job.planned.needs) else State.NEEDLESS

    def similar(self, job: Job) -> str:
        """Return the settings in which a finished run differs from a job that was never begun, "" without one."""
        if self.run(job) is not None:
            return ""
        option = [override for override in job.extra if override.startswith("backbone")]
        simulated = f"backbone={EMBEDDED}" in job.extra or bool(self._compose(option)["backbone"].get("simulated"))
        variant = Variant(backbone="", name="", overrides=tuple(job.extra), simulated=simulated)
        similar = self._similar.find(
            job.planned, variant, lambda run, seed: self.run(replace(job, planned=run, seed=seed)), any_size=True
        )
        return ", ".join(similar.differs) if job.seed in {run.seed for run in similar.runs} else ""

    def command(self, job: Job) -> list[str] | None:
        """Return the arguments of ``ace-bench run``, or ``None`` while a run that it needs is not finished."""
        overrides = self._overrides(job)
        return overrides and [*overrides, f"seed={job.seed}", f"name={NAME}", f"results={self._results}"]

    def _make_contexts(self, job: Job, need: Need) -> bool:
        """Write the contexts around a run's sharpest fall, and return whether it has one."""
        run = self.run(replace(job, planned=need.run))
        return need.context == TESTED or (run is not None and write_around_fall(run.folder))

    def _overrides(self, job: Job) -> list[str] | None:
        return self._runs.overrides(job.planned, seed=job.seed, extra=job.extra)


FAILED = 1
UNFINISHED = "unfinished_runs.txt"
"""In the results folder: the commands of the runs that failed, which are too long for a line."""


class Reproduction:
    """The jobs of one request, and their results."""

    def __init__(
        self, request: ReproduceRequest, jobs: Sequence[Job], index: ResultsIndex, console: Console, workers: Workers
    ) -> None:
        self._request, self._jobs, self._index = request, jobs, index
        self._console, self._workers = console, workers
        self._states = self._read_states()
        self._lock = threading.Lock()
        self._overrides_of_run: dict[str, Overrides] = {}
        self._name_of_run: dict[Overrides, str] = {}
        self._board = Board(console, len(jobs), self._name_of_run)
        self._problems: dict[Job, str] = {}
        """By job that was tried: why it is not finished, "" if it is."""
        self._measured: Mapping[str, TableFiles] = {}

    def show(self) -> None:
        """Print the state of each run and its command."""
        for job in self._jobs:
            command = self._as_typed(job, self._states.command(job))
            self._console.print(f"{self._states.of(job).value:9} {command}")
        for name in measurements(self._request, self._index.experiments):
            self._console.print(f"measured  experiment={name}")
        finished = sum(self._states.of(job) is State.FINISHED for job in self._jobs)
        self._console.print(f"{len(self._jobs)} runs, {finished} of them finished")
        self._show_similar(self._jobs)

    def _show_similar(self, jobs: Iterable[Job]) -> None:
        """List the jobs that exist as runs with other settings."""
        counts = Counter(filter(None, map(self._states.similar, jobs)))
        for settings, number in counts.items():
            self._console.print(
                f"{number} of these exist as finished runs that differ in {settings}: given these settings, this "
                "command takes them in place of new runs.",
                style="yellow",
            )

    def unfinished(self, *, continue_begun: bool) -> list[Job]:
        """Return the jobs to do, without those that need nothing or, if asked, have a folder."""
        done = {State.FINISHED, State.NEEDLESS} | (set() if continue_begun else {State.BEGUN, State.CHANGED})
        return [job for job in self._jobs if self._states.of(job) not in done]

    def candidate(self, job: Job) -> Candidate:
        """Return what is checked of a job before any is started."""
        # Some file in place of the context that is not made yet: it must exist, and is not read.
        later = (f"{need.setting}={quote(__file__)}" for need in job.planned.needs)
        return Candidate(overrides=(*self._overrides(job), *later), waits=bool(job.planned.needs))

    def _overrides(self, job: Job) -> list[str]:
        return run_overrides(job.planned, job.extra, self._index.compose)

    def complete(self, unfinished: Sequence[Job]) -> int:
        """Measure, make the unfinished runs, then tables and figures. Returns the exit status.

        Measurements come first, because they find mistakes that a check of settings cannot find, such as a missing
        package, before runs are paid for.
        """
        self._measured = measured_tables(self._request, self._index.experiments)
        left_begun = len(unfinished) < len(self.unfinished(continue_begun=True))
        if self._jobs or not self._measured:
            self._console.print(f"{len(unfinished)} of {len(self._jobs)} runs to do, {self._workers.count} at a time")
        self._show_similar(unfinished)
        self._make(unfinished)
        if self._workers.stopped.is_set():
            names = ",".join(name for name in self._request.names if not name.startswith("figure_"))
            choice = "".join(f" {word}" for word in choice_words(self._request.chosen))
            looks = f" --looks {self._request.looks}" * (self._request.looks > 1)
            tables = f"{command_line('tables')} table={names}{choice} results={self._request.results}{looks}"
            shown = tables if names else ""
            hint = f" `{shown}` shows what is there so far." if shown else ""
            self._console.print(f"Stopped; the same command continues.{hint}")
            return EXIT_INTERRUPTED
        manifest = Manifest(self._request)
        inputs = manifest.inputs()
        files = self._write_results()
        status = self._summarize()
        if status == 0 and not left_begun:
            manifest.keep(inputs, files)
        return status

    def _make(self, jobs: Sequence[Job]) -> None:
        self._board = Board(self._console, len(jobs), self._name_of_run)

        def note(batch: Batch[Job], outcome: Outcome) -> None:
            for job in batch.jobs:
                self._note_outcome(job, outcome)

        def settings(job: Job) -> Mapping[str, Any]:
            return self._index.compose(self._overrides(job))

        schedule = Schedule(
            jobs=jobs,
            overrides=self._overrides_by_job,
            needs=lambda job: [replace(job, planned=need.run) for need in job.planned.needs],
            chain=lambda job: chain_of(job.planned, settings(job)),
            memory=lambda job: memory_of(job.planned, settings(job)),
            room=free_memory(),
        )
        self._workers.make(schedule, note, self._board)

    def _overrides_by_job(self, jobs: Iterable[Job]) -> Mapping[Job, Overrides | None]:
        """Return the settings of each job, ``None`` for one that is not to be made.

        Jobs that are the same run in other words, such as a setting at its default, have the same ones, so that they
        are not made side by side in one folder.
        """
        self._states = self._read_states()  # includes contexts that earlier jobs have made
        overrides_by_job: dict[Job, Overrides | None] = {}
        for job in jobs:
            arguments = self._states.command(job)
            needless = arguments is not None and self._states.of(job) is State.NEEDLESS
            overrides_by_job[job] = None
            if arguments is None:
                self._note(job, problem="not started: a run that it needs is not finished")
            elif not needless:
                run = digest_of(self._index.compose(arguments))
                overrides = self._overrides_of_run.setdefault(run, tuple(arguments))
                self._name_of_run.setdefault(overrides, job.name)
                overrides_by_job[job] = overrides
        return overrides_by_job

    def _read_states(self) -> RunStates:
        plans = [job.planned for job in self._jobs]
        return RunStates(self._request.results, self._index.compose, plans)

    def _note_outcome(self, job: Job, outcome: Outcome) -> None:
        if outcome.end.status == 0:
            self._note(job, details=outcome_in_words(outcome))
        elif not self._workers.stopped.is_set():
            self._note(job, problem=f"failed with status {outcome.end.status}", details=outcome_in_words(outcome))

    def _note(self, job: Job, *, problem: str = "", details: str = "") -> None:
        with self._lock:
            self._problems[job] = problem
            self._board.end(job.name, details or problem, "red" if problem else None)

    def _write_results(self) -> list[Path]:
        """Write the tables and figures of the request from the runs that exist. Return the files."""
        request = self._request
        extra = (*((f"backbone={request.backbone}",) if request.backbone else ()), *request.overrides)
        index = replace(self._index, results=request.results, extra=extra)
        for problem in index.found.problems:
            self._console.print(problem.reason, style="yellow")
        experiments = index.experiments
        whole = {name for name in paper_results(experiments) if count(name, experiments)} <= set(request.names)
        everything = whole and not request.chosen
        tables = [name for name in request.names if not name.startswith("figure_")] + [CLAIMS] * everything
        files: list[Path] = []
        if tables:
            wanted = Wanted(names=tuple(tables), differences=request.differences, looks=request.looks)
            files += write_tables(
                index, request.results / "tables", wanted, measured=self._measured, note=self._show_table
            )
        kinds = [FIGURES[name] for name in request.names if name in FIGURES]
        if kinds:
            wanted = Wanted(
                names=() if everything else tuple(kinds), differences=request.differences, style=request.style
            )
            files += write_figures(index, request.results / "figures", wanted)
        for file in files:
            if file.suffix in (".md", ".png") or (request.style != "screen" and file.suffix == ".pdf"):
                self._console.print(str(file))
        return files

    def _show_table(self, page: Page) -> None:
        """Print the results of a table, whose statistics and notes are in its file."""
        results = page.grids[0] if page.grids else None
        if results is None:
            return
        table = Table(title=page.title, title_justify="left", title_style="bold")
        for heading in results.header:
            add_column(table, heading)
        for row in results.rows:
            table.add_row(*map(str, row))
        self._console.print(table)

    def _as_typed(self, job: Job, arguments: Sequence[str] | None = None) -> str:
        """Return a run's command as a user would type it. A context that does not exist yet is a comment."""
        parts = arguments or [*self._overrides(job), f"seed={job.seed}"]
        needs = "" if arguments else "".join(f"  # then {need.setting}=..." for need in job.planned.needs)
        return f"{command_line('run')} {shlex.join(parts)}{needs}"

    def _summarize(self) -> int:
        problems = {job: problem for job, problem in self._problems.items() if problem}
        if problems:
            commands = self._request.results / UNFINISHED
            lines = (f"{self._as_typed(job)}  # {problem}\n" for job, problem in problems.items())
            write_files({commands: "".join(lines)})
            self._console.print(f"The commands of the runs that are not finished: {commands}", style="red")
        if not self._jobs and self._measured:
            return 0
        tried, failed = len(self._problems), len(problems)
        self._console.print(
            f"{tried - failed} runs finished now, {len(self._jobs) - tried} before, left alone or needless, "
            f"{failed} not finished"
        )
        return FAILED if problems else 0
