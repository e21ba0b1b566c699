"""A static page of a results folder: the paper's tables and tables of all other runs, each number linked to its runs.

Runs of real models on real data stand first, with the paper's numbers beside them; all others stand apart. Rows
without runs are left out.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ace_bench.report.page.content import style_page, write_bundle
from ace_bench.report.page.results import Results
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.formats import page_of
from ace_bench.report.tables.grids import Grid, published_text, shown, statistics_grid
from ace_bench.report.tables.own_tables import Layout, own_tables
from ace_bench.report.tables.results_index import ALL, ResultsIndex
from ace_bench.report.tables.table import Table
from ace_bench.report.tables.write import table_names, tables_of
from ace_bench.store.files import write_files

_RUNS = "runs"
"""The folder of the site with the runs themselves."""
_OTHERS = Layout(rows=("method", "labels", "backbone"))
_PARTS = (
    ("Real models on real data", "Numbers of the paper stand beside ours where it has some."),
    ("Real models on other data", "Not comparable with published numbers: the samples are a project's own."),
    ("Simulated", "Stand-ins answered, which are no language models: these numbers show only that the program works."),
)


def write_results_page(index: ResultsIndex, out: Path, title: str) -> list[str]:
    """Write ``index.html`` and the pages of the runs to a new or empty folder; return what it lacks, and why.

    Raises ``ConfigError`` where the folder holds something, and ``FileUnwritable``.
    """
    results = Results(index.results)
    lacks = write_bundle(results, out / _RUNS)
    links = {run.folder: f"{_RUNS}/index.html#view=summary&run={key}" for key, run in results.runs().items()}
    parts: list[list[str]] = [[] for _ in _PARTS]
    for table in _tables(index):
        place = 2 if table.about["simulated"] else 1 if table.about["source"] == "sample" else 0
        parts[place].append(_section(table, links))
    body = [
        f"<header><h1>{html.escape(title)}</h1><p class='note'>A number leads to its run, and the seeds behind it to "
        f"theirs. <a href='{_RUNS}/index.html'>All runs, with every prompt and reply</a>.</p></header>",
        *(
            f"<h2>{name}</h2><p class='note'>{note}</p>{''.join(sections) or '<p>None.</p>'}"
            for (name, note), sections in zip(_PARTS, parts, strict=True)
        ),
    ]
    write_files({out / "index.html": style_page(title, "\n".join(body))})
    return lacks


def _tables(index: ResultsIndex) -> Iterator[Table]:
    """Yield the paper's tables that have runs, and tables of the runs that are in none of them."""
    used: set[Path] = set()
    for name in table_names(index.experiments, ()):
        for _, table in tables_of(name, index, ALL):
            used |= {run.folder for cell in table.measured for run in cell.runs}
            yield table
    others = [run for run in index.found.runs if run.finished and run.folder not in used]
    if others:
        yield from own_tables(others, _OTHERS)


def _section(table: Table, links: Mapping[Path, str]) -> str:
    page = page_of(table)
    names = ((column.title, *["paper"] * table.paper.numbers) for column in table.columns.values())
    rows = [
        "<tr>" + _headings(table.rows[row].texts) + "".join(_cells(line[name], table, links) for name in table.columns)
        for row, line in table.cells.items()
        if any(cell.runs or cell.unfinished for cell in line.values())
    ]
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in page.notes)
    return (
        f"<section><h3>{html.escape(page.title)}</h3>{_table([*table.names, *chain(*names)], rows, len(table.names))}"
        f"<details><summary>Statistics and notes</summary>{_grid(statistics_grid(table))}<ul class='note'>{notes}</ul>"
        "</details></section>"
    )


def _cells(cell: Measured, table: Table, links: Mapping[Path, str]) -> str:
    """Return a number with links to its runs and, where they are shown, the paper's."""
    text = html.escape(str(shown(cell)))
    known = [(run.seed, links[run.folder]) for run in cell.runs if run.folder in links]
    if known:
        text = f"<a href='{known[0][1]}'>{text}</a>"
    if len(known) > 1:
        seeds = " ".join(f"<a href='{link}'>seed {seed}</a>" for seed, link in known)
        text += f" <span class='note'>{seeds}</span>"
    found = [text, *[published_text(cell)] * table.paper.numbers]
    return "".join(f"<td>{one}</td>" for one in found)


def _headings(texts: Sequence[str]) -> str:
    first, *rest = map(html.escape, texts)
    return f"<th scope='row'>{first}</th>" + "".join(f"<td class='words'>{text}</td>" for text in rest)


def _table(header: Sequence[str], rows: Sequence[str], words: int) -> str:
    """Return a table whose first columns hold ``words``."""
    marks = (" class='words'" * (place < words) for place in range(len(header)))
    heads = "".join(f"<th scope='col'{mark}>{html.escape(text)}</th>" for text, mark in zip(header, marks, strict=True))
    return f"<div class='scroll'><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _grid(grid: Grid) -> str:
    rows = (_headings([str(word) for word in row]) for row in grid.rows)
    return _table(grid.header, [f"<tr>{row}" for row in rows], len(grid.header)) if grid.rows else ""
