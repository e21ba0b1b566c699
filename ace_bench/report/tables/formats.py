"""A table's pages: Markdown, CSV, and its results as a paper prints them.

A paper has groups of rows, changes to the base in the cells, and the best number in bold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ace_bench.report import escaping
from ace_bench.report.escaping import one_line
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import (
    MEANINGS,
    SIGNIFICANT,
    Grid,
    Number,
    notes_of,
    number,
    published_text,
    remarks,
    reservations,
    result_grid,
    shown,
    signed,
    statistics_grid,
)
from ace_bench.report.tables.table import MISSING, Continuing, Heading, Table
from ace_bench.report.tables.unfinished import unfinished_grid

YES, NO = "✓", "✗"
"""Whether a method sees reference answers."""
_LEFT_OUT = ("missing", "left out", "-")
"""States of cells without a run, which a paper prints as a dash."""
_DASH = "–"


@dataclass(frozen=True, kw_only=True)
class Page:
    """The text of a table. ``label`` starts its LaTeX labels."""

    title: str
    label: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...] = ()
    continuing: Continuing | None = None


def page_of(table: Table, extra: Iterable[Grid] = ()) -> Page:
    """Return the text of a table: results, statistics, unfinished runs, ``extra`` grids, notes, and what continues."""
    grids = (result_grid(table), statistics_grid(table), unfinished_grid(table), *extra)
    return Page(
        title=table.title,
        label=table.label,
        grids=tuple(grid for grid in grids if grid.rows),
        notes=tuple(" ".join(note.split()) for note in notes_of(table)),
        continuing=table.continuing,
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
    if page.continuing:
        parts.append(f"{escaping.markdown(str(page.continuing))}:")
        parts.append("```\n" + "\n".join(map(one_line, page.continuing.commands)) + "\n```")
    return "\n\n".join(filter(None, parts)) + "\n"


def csv(tables: Sequence[Table]) -> str:
    """Format one line per cell, with numbers in full precision. Unknown values are empty."""
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
    tested, bounds = cell.comparison, cell.comparison.interval if cell.comparison else None
    record: dict[str, object] = {
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
        record |= {"paper": cell.published, "ours_less_paper": table.paper.difference(cell)}
    return record


def printed_grid(table: Table) -> Grid:
    """Lay out the results for LaTeX, with the paper's number beside each of ours if the table shows them."""
    rows = {row: line for row, line in table.cells.items() if not all(cell.refused for cell in line.values())}
    lines = {row: table.rows[row] for row in rows}
    header = [*(table.printed_names or table.names)]
    above = [""] * len(header)
    cells_by_row: dict[str, list[str | Number]] = {row: [*line.in_print] for row, line in lines.items()}
    for column, heading in table.columns.items():
        cells = {row: line[column] for row, line in rows.items()}
        best = _best_rows(cells, lines, table.base)
        for row, cell in cells.items():
            cells_by_row[row].append(_word(cell, lines[row], best=row in best))
        header += [" ".join(heading.in_print)]
        above += [heading.above]
        if table.paper.numbers and any(cell.published is not None for cell in cells.values()):
            header += ["paper"]
            above += [heading.above]
            for row, cell in cells.items():
                cells_by_row[row].append(_DASH if cell.published is None else Number(text=published_text(cell)))
    return Grid(
        title="Results",
        header=tuple(header),
        rows=tuple(map(tuple, cells_by_row.values())),
        legend=tuple(_legend(table, cells_by_row.values())),
        above=tuple(above) if any(above) else (),
        groups=tuple(line.above for line in lines.values()),
    )


def _word(cell: Measured, line: Heading, *, best: bool) -> str | Number:
    """Return a cell with its change against the base row."""
    word = shown(cell)
    if isinstance(word, str):
        return _DASH if word in _LEFT_OUT else word
    paper = cell.place.paper
    if cell.change is not None and (not line.part or (paper is not None and paper.change is not None)):
        is_better = cell.change > 0 if cell.change and cell.significant else None
        word = replace(word, change=signed(cell.change, cell.change_unit), better=is_better)
    return replace(word, best=best)


def _best_rows(cells: dict[str, Measured], lines: dict[str, Heading], base: str) -> set[str]:
    """Return the row of each group whose number alone is the best, as it is shown.

    The group of the base row has none, unless it is the only one.
    """
    groups: dict[str, dict[str, float]] = {}
    for row, cell in cells.items():
        if cell.value is not None and not lines[row].part:
            groups.setdefault(lines[row].above, {})[row] = cell.value
    best = set()
    for group in groups.values():
        unit = next(iter(cells.values())).place.unit
        texts = {row: number(value, unit) for row, value in group.items()}
        top = texts[(max if unit == "percent" else min)(group, key=group.__getitem__)]
        alone = [row for row, text in texts.items() if text == top]
        if len(alone) == 1 < len(texts) and not (base in group and len(groups) > 1):
            best |= {*alone}
    return best


def _legend(table: Table, cell_rows: Iterable[Sequence[str | Number]]) -> Iterator[str]:
    """Explain the words and marks in the results. A mark before a colon is the one in the cells."""
    cells = [word for line in cell_rows for word in line]
    numbers = [word for word in cells if isinstance(word, Number)]
    if any(word.change for word in numbers):
        units = {cell.change_unit for cell in table.measured if cell.change is not None}
        unit = "points" if units == {"points"} else "%" if units == {"percent"} else "points or %"
        coloured = ", coloured where the test finds a difference" * any(word.better is not None for word in numbers)
        yield f"In parentheses: change against {table.base_title} ({unit}){coloured}."
    if any(word.bounds for word in numbers):
        yield "In brackets: 95% interval of a score; for other numbers, smallest and largest over seeds."
    if any(word.best for word in numbers):
        grouped = any(heading.above for heading in table.rows.values())
        yield f"Bold: alone the best of {'its group' if grouped else 'a column'}."
    if NO in cells:
        yield f"{YES}: reference answers are seen; {NO}: at most whether an answer was right."
    if family := table.family:
        yield f"{SIGNIFICANT}: differs from {table.base_title} (p < 0.05, paired, Holm over {family} comparisons)."
    marks = {mark for word in numbers for mark in word.marks}
    yield from (f"{mark}: {meaning}." for mark, meaning in MEANINGS.items() if mark in marks)
    yield from reservations(table)
    if any(cell.state in _LEFT_OUT for cell in table.measured):
        yield f"{_DASH}: no finished run."
