"""Reproduce a result of the paper: run what is missing of it, then make its table.

    ace-bench reproduce --list                             what there is
    ace-bench reproduce table=2 --estimate                 what it takes, by the paper's own counts
    ace-bench reproduce table=2 backbone=embedded          rehearse it for free, on sample data
    ace-bench reproduce table=2 seed=0,1,2 budget.usd=20   run it, with the paper's model, in three seeds
    ace-bench reproduce table=all backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME

Settings are those of `ace-bench run` and go to every run; METHOD:SETTING goes to the runs of a method, such as
gepa:method.max_metric_calls=20. Finished runs are skipped and begun ones continued: the same command again does what is
left. A run that fails stops no other; the exit status is 1 then, and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ace_bench.cli.arguments import Parser
from ace_bench.cli.reproducing.checking import check_methods, check_settings
from ace_bench.cli.reproducing.estimating import Cost, Estimator, together
from ace_bench.cli.reproducing.job_runner import INTERRUPTED, Crew, Ended, cores
from ace_bench.cli.reproducing.manifest import Manifest
from ace_bench.cli.reproducing.request import EMBEDDED, Job, ReproduceRequest, count, jobs, read_asked
from ace_bench.cli.reproducing.run_status import Standing, State, command_to_run, shown
from ace_bench.cli.results import DIFFERENCES
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import configs_folder
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.report.experiments import Experiments, PlannedRun
from ace_bench.report.figures.write import write_figures
from ace_bench.report.overrides import run_overrides
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.report.tables.write import write_tables

FAILED, MISTAKE = 1, 2

_KINDS = {"figure_1": "overall", "figure_2": "collapse"}
_TAIL = 12
"""Lines shown of what a failed run said."""


def main(arguments: Sequence[str]) -> int:
    """Do what is asked and return the exit status."""
    options = _parser().parse_intermixed_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    gathered = ResultsIndex(results=Path("results"), configs=configs_folder())
    if options.list:
        console.print(_listing(gathered.experiments))
        return 0
    refuse_secret_arguments(options.settings)
    asked = read_asked(options.settings, gathered.experiments, differences=options.differences)
    wanted = jobs(asked, gathered.experiments)
    check_settings(wanted, gathered.compose, gathered.configs)  # mistakes are reported before anything starts
    if options.estimate:
        console.print(*_estimates(wanted, gathered), sep="\n")
        return 0
    if not options.dry_run:
        if Manifest(asked).holds:
            console.print(_nothing_to_do(len(wanted), asked), markup=False)
            return 0
        check_methods(wanted, gathered.compose)
    return Reproduction(asked, wanted, gathered, console, options.jobs).run(
        only_missing=options.only_missing, dry=options.dry_run
    )


class Reproduction:
    """The runs that were asked for, made in an order in which each finds what it needs."""

    def __init__(
        self,
        asked: ReproduceRequest,
        wanted: Sequence[Job],
        gathered: ResultsIndex,
        console: Console,
        workers: int | None,
    ) -> None:
        self._asked = asked
        self._wanted = wanted
        self._gathered = gathered
        self._console = console
        self._manifest = Manifest(asked)
        self._crew = Crew(workers or (cores() if asked.backbone == EMBEDDED else 1))
        self._standing = self._read()
        self._lock = threading.Lock()
        self._ended: dict[Job, str] = {}

    def run(self, *, only_missing: bool, dry: bool) -> int:
        """Make what is not finished, in waves; then the tables. Returns the exit status."""
        todo = [job for job in self._wanted if self._due(job, only_missing=only_missing, say=dry)]
        left = only_missing and any(self._standing.state(job) is State.BEGUN for job in self._wanted)
        if dry:
            return 0
        self._console.print(f"{len(todo)} of {len(self._wanted)} runs to do, {self._crew.workers} at a time")
        for depth in sorted({_depth(job.planned) for job in todo}):
            if not self._crew.stopped.is_set():
                self._wave(sorted((job for job in todo if _depth(job.planned) == depth), key=_quick))
        if self._crew.stopped.is_set():
            self._console.print("Stopped; the same command goes on.")
            return INTERRUPTED
        inputs = self._manifest.inputs()
        files = self._results()
        status = self._verdict()
        if status == 0 and not left:
            self._manifest.keep(inputs, files)
        return status

    def _due(self, job: Job, *, only_missing: bool, say: bool) -> bool:
        """Whether a run is to be made; ``say`` tells how it stands."""
        state = self._standing.state(job)
        if say:
            self._console.print(f"{state.value:9} {self._shown(job, self._standing.command(job))}", markup=False)
        return state not in (State.FINISHED, State.NEEDLESS) and not (only_missing and state is State.BEGUN)

    def _wave(self, wave: Sequence[Job]) -> None:
        self._standing = self._read()  # earlier waves have made what this one needs
        ready: dict[Job, list[str]] = {}
        for job in wave:
            command = self._standing.command(job)
            if command is None:
                self._tell(job, "not started: a run that it needs is not finished")
            elif self._standing.state(job) is not State.NEEDLESS:
                ready[job] = command_to_run(command)
        places = list(ready)
        self._crew.work(list(ready.values()), lambda place, ended: self._done(places[place], ended))

    def _read(self) -> Standing:
        return Standing(self._asked.results, self._gathered.compose)

    def _done(self, job: Job, ended: Ended) -> None:
        if ended.status == 0:
            self._tell(job, "", said=f"finished in {ended.seconds:.0f}s")
        elif not self._crew.stopped.is_set():
            tail = "".join(f"\n    {line}" for line in ended.output.splitlines()[-_TAIL:])
            self._tell(job, f"failed with status {ended.status}", said=tail)

    def _tell(self, job: Job, problem: str, *, said: str = "") -> None:
        with self._lock:
            self._ended[job] = problem
            text = f"[{len(self._ended)}] {self._shown(job)}: {problem}{said}"
            self._console.print(text, markup=False, style="red" if problem else None)

    def _results(self) -> list[Path]:
        """Write the tables and figures that were asked for from what is there; return the files."""
        extra = (*((f"backbone={self._asked.backbone}",) if self._asked.backbone else ()), *self._asked.overrides)
        gathered = ResultsIndex(results=self._asked.results, configs=self._gathered.configs, extra=extra)
        tables = [name for name in self._asked.names if not name.startswith("figure_")]
        files = []
        if tables:
            files += write_tables(gathered, self._asked.results / "tables", tables, differences=self._asked.differences)
        everything = {name for name in self._gathered.experiments.by_name if count(name, self._gathered.experiments)}
        kinds = [_KINDS[name] for name in self._asked.names if name in _KINDS]
        if kinds:
            chosen = () if everything <= set(self._asked.names) else kinds
            files += write_figures(
                gathered, self._asked.results / "figures", chosen, differences=self._asked.differences
            )
        for file in files:
            if file.suffix in (".md", ".png"):
                self._console.print(str(file), markup=False)
        return files

    def _shown(self, job: Job, command: Sequence[str] | None = None) -> str:
        return shown(job, self._gathered.compose, command)

    def _verdict(self) -> int:
        problems = {job: problem for job, problem in self._ended.items() if problem}
        for job, problem in problems.items():
            self._console.print(f"{problem}: {self._shown(job)}", markup=False, style="red")
        counted = Counter("not finished" if problem else "finished now" for problem in self._ended.values())
        before = len(self._wanted) - len(self._ended)
        self._console.print(
            f"{counted['finished now']} runs finished now, {before} before, left alone or needless, "
            f"{counted['not finished']} not finished"
        )
        return FAILED if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("reproduce", __doc__)
    parser.add_argument(
        "settings", nargs="*", help="table=..., figure=..., backbone=..., seed=..., any of `run`, METHOD:SETTING"
    )
    parser.add_argument("--list", action="store_true", help="list the paper's results and how many runs each needs")
    parser.add_argument("--estimate", action="store_true", help="what the runs would take; nothing is run")
    parser.add_argument("--dry-run", action="store_true", help="how each run stands, and its command; nothing is run")
    parser.add_argument("--only-missing", action="store_true", help="leave runs alone that were begun")
    parser.add_argument("--differences", action="store_true", help=DIFFERENCES)
    parser.add_argument("--jobs", type=int, help="runs at a time (default: 1; with the embedded backbone all cores)")
    return parser


def _nothing_to_do(runs: int, asked: ReproduceRequest) -> str:
    return (
        f"Nothing to do: all {runs} runs are finished, and the tables and figures in {asked.results} are those that "
        "this version makes of them."
    )


def _depth(planned: PlannedRun) -> int:
    return 1 + max((_depth(need.run) for need in planned.needs), default=-1)


def _quick(job: Job) -> bool:
    """Whether a run is none on AppWorld: those take longest, and begun last they would leave the other cores idle."""
    return "task=appworld" not in job.planned.overrides


def _listing(experiments: Experiments) -> Table:
    table = Table("", "result", "model", "runs", box=None)
    for name, experiment in experiments.by_name.items():
        number = count(name, experiments)
        asked = name.replace("_", "=") if name.startswith("figure_") else f"table={name}"
        model = experiments.paper.table(experiment.paper).model if experiment.paper else ""
        table.add_row(asked, experiment.title, model, str(number) if number else "none: others' systems")
    return table


def _estimates(wanted: Sequence[Job], gathered: ResultsIndex) -> Iterator[Table | str]:
    """Tell what runs take, by the paper's counts."""
    if any(f"backbone={EMBEDDED}" in job.extra for job in wanted):
        raise ConfigError("the embedded backbone costs nothing; leave backbone= out, or name the one to be paid")
    estimator = Estimator(gathered.experiments.paper)
    parts = {
        job: estimator.parts(gathered.compose(run_overrides(job.planned, job.extra, gathered.compose)))
        for job in wanted
    }
    table = Table("run", "calls", "tokens in", "tokens out", "dollars", "hours", box=None)
    for job, some in parts.items():
        table.add_row(_named(job), *_figures(together(some)))
    known = together((part for some in parts.values() for part in some), at_least=True)
    table.add_row("together, at least", *_figures(known), style="bold")
    yield table
    yield (
        "By the counts of the paper's tables 4, 12 and 14; n/a is what it does not count. Reflection counts in full "
        "rounds, tokens at list prices without cache discounts (FiNER online: the paper's dollars), hours with runs "
        "one after another. `{command_line('run')} ... dry_run=true` estimates any run from its own prompts."
    )


def _named(job: Job) -> str:
    """Name a run shortly: groups by their option alone."""
    words = (override for override in job.planned.overrides if not override.startswith("mode.before"))
    return " ".join([re.sub(r"^(task|method|mode)=", "", word) for word in words] + [f"seed={job.seed}"])


def _figures(cost: Cost) -> list[str]:
    def say(value: float | None, form: str, unit: float = 1) -> str:
        return "n/a" if value is None else format(value / unit, form)

    return [
        say(cost.calls, ",.0f"),
        say(cost.prompt, ",.1f", 1e6) + ("" if cost.prompt is None else "M"),
        say(cost.completion, ",.2f", 1e6) + ("" if cost.completion is None else "M"),
        say(cost.usd, ",.2f"),
        say(cost.seconds, ",.1f", 3600),
    ]
