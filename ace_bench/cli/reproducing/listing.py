"""Tables of the paper's results and their cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ace_bench.cli.arguments import add_column
from ace_bench.cli.reproducing.estimating import APPWORLD, CostRange, Estimator
from ace_bench.cli.reproducing.rehearsing import Rehearsals
from ace_bench.cli.reproducing.request import EMBEDDED, Job, count
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.report.experiments import Experiments
from ace_bench.report.planned import run_overrides
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.planning import Composer


def listing(experiments: Experiments) -> Table:
    """Return the paper's results and the documents' experiments with the number of runs that each needs."""
    table = Table(box=None)
    for heading in ("", "result", "model", "runs"):
        add_column(table, heading)
    for name, experiment in experiments.by_name.items():
        table.add_row(_setting(name, experiments), experiment.title, experiment.model, _runs(name, experiments))
    return table


def _setting(name: str, experiments: Experiments) -> str:
    if name in experiments.others:
        return f"experiment={name}"
    return name.replace("_", "=") if name.startswith("figure_") else f"table={name}"


def _runs(name: str, experiments: Experiments) -> str:
    if experiments.by_name[name].measure:
        return "none: a measurement"
    most = "at most " * (name in experiments.combined)
    return most + str(count(name, experiments) or "none: others' systems")


def estimates(jobs: Sequence[Job], index: ResultsIndex, compose: Composer, *, rehearsed: bool) -> Iterator[Table | str]:
    """Yield a table of each run's cost by the paper's counts, and notes.

    With ``rehearsed`` the runs of experiments that list methods are estimated from a few samples, which takes a second
    or two for each, but for AppWorld's, where it would take minutes.
    """
    if any(f"backbone={EMBEDDED}" in job.extra for job in jobs):
        raise ConfigError("the embedded backbone costs nothing; leave backbone= out, or name a paid one")
    estimator, rehearsals = Estimator(index.experiments.paper), Rehearsals(compose)
    experiments = index.experiments
    listed = {run for name in experiments.combined for run in experiments.runs(name) if run.option("task") != APPWORLD}
    costs: dict[Job, CostRange] = {}
    small = {job for job in jobs if rehearsed and job.planned in listed}
    for job in track(jobs, "Estimating", console=Console(stderr=True), transient=True, disable=not small):
        overrides = run_overrides(job.planned, job.extra, index.compose)
        costs[job] = rehearsals.cost(overrides) if job in small else estimator.cost(index.compose(overrides))
    table = Table(box=None)
    for heading in ("run", "calls", "tokens in", "tokens out", "dollars", "hours"):
        add_column(table, heading)
    for job, cost in costs.items():
        table.add_row(_named(job), *(column.text([cost]) for column in _COLUMNS))
    table.add_row(f"{len(costs)} together", *(column.text([*costs.values()]) for column in _COLUMNS), style="bold")
    yield table
    if small:
        yield _REHEARSED
        yield from (f"Not estimated: {problem}" for problem in rehearsals.problems)
    if small < costs.keys():
        yield ("On AppWorld: by" if small else "By") + _BY_PAPER
    yield (
        "Tokens are at list prices without cache discounts, and a sum says of how many runs it is. "
        f"`{command_line('run')} ... dry_run=true` estimates any run from its own prompts."
    )


def _named(job: Job) -> str:
    """Return a run's short name: groups by their option alone."""
    words = (override for override in job.planned.overrides if not override.startswith("mode.before"))
    return " ".join([re.sub(r"^(task|method|mode)=", "", word) for word in words] + [f"seed={job.seed}"])


@dataclass(frozen=True)
class _Column:
    """A column of the estimate: a field of ``Cost``, its format, and the unit that it is shown in."""

    name: str
    form: str
    unit: float = 1
    suffix: str = ""

    def text(self, costs: Sequence[CostRange]) -> str:
        """Sum up what is known, and say of how many runs if it is not all of them."""
        ends = [(getattr(cost.low, self.name), getattr(cost.high, self.name)) for cost in costs]
        known = [pair for pair in ends if None not in pair]
        if not known:
            return "n/a"
        low, high = (format(sum(column) / self.unit, self.form) for column in zip(*known, strict=True))
        text = (low if low == high else f"{low} to {high}") + self.suffix
        return text if len(known) == len(ends) else f"{text} ({len(known)} of {len(ends)} runs)"


_COLUMNS = (
    _Column("calls", ",.0f"),
    _Column("prompt", ",.1f", 1e6, "M"),
    _Column("completion", ",.2f", 1e6, "M"),
    _Column("usd", ",.2f"),
    _Column("seconds", ",.1f", 3600),
)

_REHEARSED = (
    "From three samples of each split, answered by the embedded reader: from no retry to all of them, and a context "
    "that keeps growing. Hours are unknown."
)
_BY_PAPER = (
    " the counts of the paper's tables 4, 12 and 14: from no retry, where every first attempt is right, to all "
    "reflection rounds. n/a is what the paper does not count. On FiNER dollars are the paper's, retries included; "
    "hours are with runs one after another."
)
