"""Costs of the runs of a table, by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ace_bench.report.records import RunSummary
from ace_bench.report.tables.build import ResultTable
from ace_bench.report.tables.cells import mean_of
from ace_bench.report.tables.grids import Grid, header_of, named, number

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

COSTS = ("calls", *_PATHS)
"""Columns of the costs."""


@dataclass(frozen=True, kw_only=True)
class StageCosts:
    """What one stage of a run cost, by ``COSTS``, as means over seeds; ``None`` is unknown."""

    row: str
    column: str
    stage: str
    amounts: Mapping[str, float | None]


def cost_grid(table: ResultTable) -> Grid:
    """Give the cost of each run by stage, as means over seeds."""
    rows = [
        (*named(table.lines[cost.row]), header_of(table, cost.column), cost.stage, *map(number, cost.amounts.values()))
        for cost in costs_of(table)
    ]
    header = ("method", "adaptation", "labels", "column", "stage", *COSTS)
    return Grid(title="Costs of a run", header=header, rows=tuple(rows))


def costs_of(table: ResultTable) -> Iterator[StageCosts]:
    """Yield the costs of each run of a table once, by stage, in the order of its rows."""
    for row, line in table.cells.items():
        seen = set()
        for column, cell in line.items():
            if cell.runs and cell.planned not in seen:
                seen.add(cell.planned)
                yield from _costs(row, column, cell.runs)


def _costs(row: str, column: str, runs: Sequence[RunSummary]) -> Iterator[StageCosts]:
    for stage in ("adapt", "evaluate"):
        found = {name: mean_of([run.value(path.format(stage=stage)) for run in runs]) for name, path in _PATHS.items()}
        calls = mean_of([sum(run.metrics["calls"][stage].values()) for run in runs])
        if found["rollouts"] or calls:
            twice = stage == "evaluate" and any(run.metrics["headline"]["before"] is not None for run in runs)
            yield StageCosts(
                row=row,
                column=column,
                stage=f"{stage}, before and after" if twice else stage,
                amounts={"calls": calls, **found},
            )
