"""Tables as Markdown and CSV, and the page that these and ``latex`` print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ace_bench.report import escaping
from ace_bench.report.escaping import one_line
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import Grid, notes_of, remarks, result_grid, statistics_grid
from ace_bench.report.tables.table import MISSING, Table


@dataclass(frozen=True, kw_only=True)
class Page:
    """The text of a table; ``label`` starts its LaTeX labels."""

    title: str
    label: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def page_of(table: Table, more: Iterable[Grid] = ()) -> Page:
    """Return the text of a table: results, statistics, ``more`` grids, notes, and the commands of missing runs."""
    grids = (result_grid(table), statistics_grid(table), *more)
    return Page(
        title=table.title,
        label=table.label,
        grids=tuple(grid for grid in grids if grid.rows),
        notes=tuple(" ".join(note.split()) for note in notes_of(table)),
        commands=table.commands,
    )


def markdown(page: Page) -> str:
    """Format a table as Markdown."""
    parts = [f"## {escaping.markdown(page.title)}"]
    parts += [
        f"### {escaping.markdown(grid.title)}\n\n"
        + escaping.markdown_table(grid.header, [[*map(str, row)] for row in grid.rows])
        for grid in page.grids
    ]
    parts.append("\n".join(f"- {escaping.markdown(note)}" for note in page.notes))
    if page.commands:
        parts.append(f"{len(page.commands)} runs are missing; run these commands in this order:")
        parts.append("```\n" + "\n".join(map(one_line, page.commands)) + "\n```")
    return "\n\n".join(filter(None, parts)) + "\n"


def csv(tables: Sequence[Table]) -> str:
    """Format one line per cell, with numbers in full precision; unknown values are empty."""
    records = [
        _record(table, row, column, cell)
        for table in tables
        for row, line in table.cells.items()
        for column, cell in line.items()
        if cell.state != MISSING
    ]
    keys = dict.fromkeys(key for record in records for key in record)
    return escaping.csv_of([{key: record.get(key) for key in keys} for record in records])


def _record(table: Table, row: str, column: str, cell: Measured) -> dict[str, object]:
    tested = cell.comparison
    bounds = tested.interval if tested else None
    found: dict[str, object] = {
        **table.about,
        **table.rows[row].fields,
        **table.columns[column].fields,
        "metric": cell.metric,
        "unit": cell.place.unit,
        "state": cell.state,
        "value": cell.value,
        "low": cell.interval.low if cell.interval else None,
        "high": cell.interval.high if cell.interval else None,
        "sd_over_seeds": cell.spread,
        "n": cell.samples,
        "seeds": " ".join(str(run.seed) for run in cell.runs),
        "faults": cell.faults,
        "against": table.base_title,
        "change": cell.change,
        "change_unit": None if cell.change is None else cell.change_unit,
        "change_low": bounds.low if bounds else None,
        "change_high": bounds.high if bounds else None,
        "change_sd_over_seeds": tested.spread if tested else None,
        "detectable": tested.detectable if tested else None,
        "p_holm": cell.p_holm,
        "p": tested.p if tested else None,
        "p_over_seeds": tested.seeds_p if tested else None,
        "test": tested.test if tested else None,
        "discordant": tested.discordant if tested else None,
        "better": tested.better if tested else None,
        "worse": tested.worse if tested else None,
        "one_seed_about": cell.scope,
        "not_the_papers_setting": "; ".join(cell.deviations),
        "notes": "; ".join(remarks(cell, table.paper)),
        "folders": " ".join(str(run.folder) for run in cell.runs),
    }
    if table.paper.numbers:
        found |= {"paper": cell.published, "ours_less_paper": table.paper.difference(cell)}
    return found
