"""Costs of the runs of a table, by stage, as means over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ace_bench.report.escaping import csv_of
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import mean_of
from ace_bench.report.tables.formats import Page
from ace_bench.report.tables.grids import Grid, number
from ace_bench.report.tables.table import Table

_PATHS = {
    "rollouts": "rollouts.{stage}",
    "tokens in": "tokens.{stage}.in",
    "tokens out": "tokens.{stage}.out",
    "cached share": "cache.{stage}.share",
    "dollars": "usd.{stage}",
    "latency (s)": "timing.{stage}.wall_without_waiting_s",
    "model time (s)": "timing.{stage}.model_s",
}
"""Costs and their metrics. Latency is wall time without time lost to retries, model time the sum over all
calls, as if they were made one after another."""
_COSTS = ("calls", *_PATHS)

_Costs = tuple[str, str, str, Mapping[str, float | None]]
"""Row, column and stage of a run, and what it cost."""


def cost_grid(table: Table) -> Grid:
    """Give the cost of each run by stage."""
    rows = [
        (*table.rows[row].texts, table.columns[column].title, stage, *map(number, amounts.values()))
        for row, column, stage, amounts in _costs_of(table)
    ]
    return Grid(title="Costs of a run", header=(*table.names, "column", "stage", *_COSTS), rows=tuple(rows))


def costs_page(table: Table) -> Page:
    """Return the text of a table's costs."""
    note = (
        "Means over seeds. Online, prediction and learning are one pass, and all of it is adaptation. Latency is "
        "wall time without waiting on retries, model time the sum over all calls."
    )
    label = table.label.replace("-", "-costs-", 1)
    return Page(title=f"Costs: {table.title}", label=label, grids=(cost_grid(table),), notes=(note,))


def costs_csv(table: Table) -> str:
    """Format one line per run and stage, with numbers in full precision; unknown values are empty."""
    return csv_of(
        [
            {**table.about, **table.rows[row].fields, **table.columns[column].fields, "stage": stage, **amounts}
            for row, column, stage, amounts in _costs_of(table)
        ]
    )


def _costs_of(table: Table) -> Iterator[_Costs]:
    """Yield the costs of each run of a table once, by stage, in the order of its rows."""
    for row, line in table.cells.items():
        seen = set()
        for column, cell in line.items():
            if cell.runs and cell.planned not in seen:
                seen.add(cell.planned)
                yield from ((row, column, stage, amounts) for stage, amounts in _by_stage(cell.runs))


def _by_stage(runs: Sequence[RunSummary]) -> Iterator[tuple[str, Mapping[str, float | None]]]:
    for stage in ("adapt", "evaluate"):
        found = {name: mean_of([run.value(path.format(stage=stage)) for run in runs]) for name, path in _PATHS.items()}
        calls = mean_of([sum(run.metrics["calls"][stage].values()) for run in runs])
        if found["rollouts"] or calls:
            twice = stage == "evaluate" and any(run.metrics["headline"]["before"] is not None for run in runs)
            yield f"{stage}, before and after" if twice else stage, {"calls": calls, **found}
