"""The page of tables: the paper's, and tables of all other runs, each number linked to its runs.

Runs of real models on real data stand first, with the paper's numbers beside them; all others stand apart. Rows
without runs are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ace_bench.core.types import Record
from ace_bench.report.page.content import VIEWER, render_tables
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.formats import page_of
from ace_bench.report.tables.grids import published_text, shown, statistics_grid
from ace_bench.report.tables.own_tables import Layout, own_tables
from ace_bench.report.tables.results_index import ALL, ResultsIndex
from ace_bench.report.tables.table import Table
from ace_bench.report.tables.unfinished import unfinished_grid
from ace_bench.report.tables.write import table_names, tables_of

_OTHERS = Layout(rows=("method", "labels", "backbone"))
_PARTS = (
    ("Real models on real data", "Numbers of the paper stand beside ours where it has some."),
    ("Real models on other data", "Not comparable with published numbers: the samples are a project's own."),
    ("Simulated", "Stand-ins answered, which are no language models: these numbers show only that the program works."),
)


def tables_page(index: ResultsIndex, runs: Mapping[str, RunSummary]) -> str:
    """Return the page, whose numbers lead to the ``runs`` of the viewer beside it, by key."""
    links = {run.folder: f"{VIEWER}#view=summary&run={key}" for key, run in runs.items()}
    parts: list[list[Record]] = [[] for _ in _PARTS]
    for table in _tables(index):
        part_index = 2 if table.about["simulated"] else 1 if table.about["source"] == "sample" else 0
        parts[part_index].append(_section(table, links))
    shown_parts: Sequence[object] = [(*part, sections) for part, sections in zip(_PARTS, parts, strict=True)]
    return render_tables(parts=shown_parts)


def _tables(index: ResultsIndex) -> Iterator[Table]:
    """Yield the paper's tables that have runs, and tables of the remaining runs."""
    used: set[Path] = set()
    for name in table_names(index.experiments, ()):
        for _, table in tables_of(name, index, ALL):
            used |= {run.folder for cell in table.measured for run in (*cell.runs, *cell.unfinished)}
            yield table
    unused = [run for run in index.found.runs if run.folder not in used]
    if unused:
        yield from own_tables(unused, _OTHERS)


def _section(table: Table, links: Mapping[Path, str]) -> Record:
    """Return what the template shows of a table: each cell with links to its runs and the paper's number."""
    page = page_of(table)
    names = chain(*((column.title, *["paper"] * table.paper.numbers) for column in table.columns.values()))
    rows = [
        (table.rows[row].texts, [_cell(line[name], links) for name in table.columns])
        for row, line in table.cells.items()
        if any(cell.runs or cell.unfinished for cell in line.values())
    ]
    return {
        "title": page.title,
        "header": [*table.names, *names],
        "words": len(table.names),
        "published": table.paper.numbers,
        "rows": rows,
        "grids": (unfinished_grid(table), statistics_grid(table)),
        "notes": page.notes,
    }


def _cell(cell: Measured, links: Mapping[Path, str]) -> Record:
    runs = [(run.seed, links[run.folder]) for run in cell.runs if run.folder in links]
    return {"text": str(shown(cell)), "runs": runs, "published": published_text(cell)}
