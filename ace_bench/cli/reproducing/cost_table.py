"""What `reproduce --estimate` shows: each run's cost, then all together in words, and hours where speed is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from statistics import median

from rich.progress import track
from rich.table import Table

from ace_bench.cli.arguments import add_column
from ace_bench.cli.reproducing.estimating import APPWORLD, PaperCounts, Rehearsals, RunCost
from ace_bench.cli.reproducing.request import EMBEDDED, Job
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError
from ace_bench.report.planned import run_overrides
from ace_bench.report.records import RunSummary, find_runs
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.estimate_text import about_in_words, cost_in_words, prices_in_words
from ace_bench.runners.planning import Composer
from ace_bench.runners.summary import duration
from ace_bench.store.call_log import Account

_BY_PAPER = "On AppWorld: by the paper's tables 12 and 14, at most with all reflection rounds."
_RATE = "timing.total.call_tokens_per_s"
"""How fast a call of a run wrote, reading its prompt included."""


def cost_table(jobs: Sequence[Job], index: ResultsIndex, compose: Composer, results: Path) -> Iterator[Table | str]:
    """Yield a table of each run's cost, then what all runs take and what the numbers rest on.

    A run is estimated as it does itself before it starts, which takes a second or two. Runs on AppWorld are estimated
    by the paper's counts. Runs in ``results`` say how fast the model is.

    Raises ``ConfigError`` if the runs cost nothing.
    """
    if any(f"backbone={EMBEDDED}" in job.extra for job in jobs):
        raise ConfigError("the embedded backbone costs nothing; leave backbone= out, or name a paid one")
    counts, rehearsals, models = PaperCounts(index.experiments), Rehearsals(compose), dict[Job, str]()
    costs: dict[Job, RunCost | None] = {}
    for job in track(jobs, "Estimating", console=Console(stderr=True), transient=True):
        overrides = run_overrides(job.planned, job.extra, index.compose)
        settings = index.compose(overrides)
        models[job] = settings["backbone"].get("model") or ""
        on_appworld = job.planned.option("task") == APPWORLD
        costs[job] = counts.cost(job.planned, settings) if on_appworld else rehearsals.cost(overrides)
    table = Table(box=None)
    for heading in ("run", "about", "at most"):
        add_column(table, heading)
    for job, cost in costs.items():
        table.add_row(job.name, *(map(cost_in_words, (cost.typical, cost.high)) if cost else ("n/a", "n/a")))
    yield table
    known = {job: cost for job, cost in costs.items() if cost is not None}
    yield from _all_together(known, len(costs))
    yield from (f"Not estimated: {problem}" for problem in rehearsals.problems)
    if known and (time := time_of(known, models, find_runs(results).runs)):
        yield time


def _all_together(known: Mapping[Job, RunCost], count: int) -> Iterator[str]:
    """Say what the runs take, of how many it is known, and what these numbers assume."""
    if not known:
        yield f"Estimate: n/a for all {count} runs."
        return
    typical, high = (reduce(add, accounts, Account()) for accounts in zip(
        *((cost.typical, cost.high) for cost in known.values()), strict=True
    ))  # fmt: skip
    runs = f"{count} runs" if len(known) == count else f"{len(known)} of {count} runs"
    yield f"Estimate, {runs}: {about_in_words(typical, high)}."
    lists = dict.fromkeys(chain.from_iterable(cost.price_lists for cost in known.values()))
    assumed = dict.fromkeys(cost.assumed or _BY_PAPER for cost in known.values())
    yield " ".join((*assumed, prices_in_words(lists, known=typical.usage.usd is not None)))


def time_of(costs: Mapping[Job, RunCost], models: Mapping[Job, str], earlier: Iterable[RunSummary]) -> str:
    """Say how long the runs take at the speed of earlier ones of the same model, "" if that is not known of each."""
    rates = defaultdict[str, list[float]](list)
    for run in earlier:
        rate = run.value(_RATE) if run.finished and not run.simulated else None
        if rate:
            rates[run.model].append(rate)
            rates[f"{run.model} {run.method}"].append(rate)
    seconds = 0.0
    for job, cost in costs.items():
        found = rates.get(f"{models[job]} {job.planned.option('method')}") or rates.get(models[job])
        if not found or cost.chain is None:
            return ""
        seconds += cost.chain / median(found)
    return f"About {duration(seconds)} one run after another, at the speed of earlier runs in the results folder."
