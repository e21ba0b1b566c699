"""Tables of the paper's results and their cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.table import Table

from ace_bench.cli.reproducing.estimating import Cost, Estimator, together
from ace_bench.cli.reproducing.request import EMBEDDED, Job, count
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.report.experiments import Experiments
from ace_bench.report.overrides import run_overrides
from ace_bench.report.tables.results_index import ResultsIndex


def listing(experiments: Experiments) -> Table:
    """Return the paper's results with the number of runs that each needs."""
    table = Table("", "result", "model", "runs", box=None)
    for name, experiment in experiments.by_name.items():
        number = count(name, experiments)
        setting = name.replace("_", "=") if name.startswith("figure_") else f"table={name}"
        model = experiments.paper.table(experiment.paper).model if experiment.paper else ""
        table.add_row(setting, experiment.title, model, str(number) if number else "none: others' systems")
    return table


def estimates(jobs: Sequence[Job], index: ResultsIndex) -> Iterator[Table | str]:
    """Yield a table of each run's cost by the paper's counts, and notes."""
    if any(f"backbone={EMBEDDED}" in job.extra for job in jobs):
        raise ConfigError("the embedded backbone costs nothing; leave backbone= out, or name a paid one")
    estimator = Estimator(index.experiments.paper)
    costs = {job: estimator.parts(index.compose(run_overrides(job.planned, job.extra, index.compose))) for job in jobs}
    table = Table("run", "calls", "tokens in", "tokens out", "dollars", "hours", box=None)
    for job, parts in costs.items():
        table.add_row(_named(job), *_figures(together(parts)))
    known = together((part for parts in costs.values() for part in parts), at_least=True)
    table.add_row("together, at least", *_figures(known), style="bold")
    yield table
    yield (
        "By the counts of the paper's tables 4, 12 and 14; n/a is what it does not count. Reflection counts in full "
        "rounds, tokens at list prices without cache discounts (FiNER online: the paper's dollars), hours with runs "
        f"one after another. `{command_line('run')} ... dry_run=true` estimates any run from its own prompts."
    )


def _named(job: Job) -> str:
    """Return a run's short name: groups by their option alone."""
    words = (override for override in job.planned.overrides if not override.startswith("mode.before"))
    return " ".join([re.sub(r"^(task|method|mode)=", "", word) for word in words] + [f"seed={job.seed}"])


def _figures(cost: Cost) -> list[str]:
    def text(value: float | None, form: str, unit: float = 1) -> str:
        return "n/a" if value is None else format(value / unit, form)

    return [
        text(cost.calls, ",.0f"),
        text(cost.prompt, ",.1f", 1e6) + ("" if cost.prompt is None else "M"),
        text(cost.completion, ",.2f", 1e6) + ("" if cost.completion is None else "M"),
        text(cost.usd, ",.2f"),
        text(cost.seconds, ",.1f", 3600),
    ]
