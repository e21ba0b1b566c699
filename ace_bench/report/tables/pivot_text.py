"""Tables of a user's own runs as Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ace_bench.report.differences import short_names
from ace_bench.report.escaping import csv_of
from ace_bench.report.tables.cells import Measured, code_warnings, csv_fields
from ace_bench.report.tables.grids import (
    INTERVALS_NOTE,
    SIGNIFICANT,
    STATISTICS,
    Grid,
    PaperShown,
    number,
    statistics_words,
    tests_note,
)
from ace_bench.report.tables.pivot import change_of
from ace_bench.report.tables.pivot_names import METRIC, MISSING, SCORE, metric_title
from ace_bench.report.tables.pivot_values import PivotTable
from ace_bench.report.tables.render import Page, markdown

_NO_PAPER = PaperShown(numbers=False)


def pivot_markdown(tables: Sequence[PivotTable]) -> str:
    """Format tables with the statistics behind them."""
    return "\n".join(markdown(_page(table)) for table in tables)


def pivot_csv(tables: Sequence[PivotTable]) -> str:
    """Format one line per cell, with numbers in full precision; unknown values are empty."""
    records = [dict(_record(table, cell)) for table in tables for cell in table.measured if cell.state != MISSING]
    keys = dict.fromkeys(key for record in records for key in record)
    return csv_of([{key: record.get(key) for key in keys} for record in records])


def column_title(table: PivotTable, column: str) -> str:
    """Return the header of a column; the score has the name that its task gives it, if there is one."""
    heading = table.columns[column]
    title = heading.title(table.names)
    found = {line[column].metric for line in table.cells.values() if line[column].metric}
    if METRIC not in heading.values:
        return " ".join(filter(None, (title, metric_title(found.pop()) if len(found) == 1 else SCORE)))
    return title


def row_names(table: PivotTable) -> tuple[str, ...]:
    """Return the headers of the columns that name a row."""
    first = next(iter(table.rows.values()))
    return tuple(table.names[path] for path in first.values)


def notes_of(table: PivotTable) -> list[str]:
    """Return the notes below a table."""
    notes = [INTERVALS_NOTE]
    if any(cell.comparison for cell in table.measured):
        notes.append(tests_note(table.base_title, table.measured))
    elif not table.base and len(table.rows) > 1:
        notes.append("No row is the base, so no difference is tested: name one by --base.")
    if table.added:
        names = ", ".join(table.names[path] for path in table.added)
        notes.append(f"Runs also differ in {names}: they have rows of their own, since only seeds are averaged.")
    if table.between:
        notes.append(f"Runs of different columns also differ in {', '.join(short_names(table.between).values())}.")
    if table.split:
        notes.append("Scores of runs that tested different samples cannot be compared: they have columns of their own.")
    return notes + code_warnings(table.measured)


def cell_text(cell: Measured) -> str:
    """Format a cell: the value, its interval, and a mark if it differs from the base row."""
    if cell.state:
        return cell.state
    return " ".join(filter(None, (number(cell.value, cell.place.unit), bounds_text(cell)))) + SIGNIFICANT * significant(
        cell
    )


def bounds_text(cell: Measured) -> str:
    """Format an interval; "" without one, and where all seeds have the same cost."""
    bounds, unit = cell.interval, cell.place.unit
    if bounds is None or cell.value is None or (not cell.points and bounds.low == bounds.high):
        return ""
    return f"[{number(bounds.low, unit)}, {number(bounds.high, unit)}]"


def significant(cell: Measured) -> bool:
    """Whether a cell differs from the base row, after the correction."""
    return cell.comparison is not None and not cell.within_noise


def _page(table: PivotTable) -> Page:
    names = row_names(table)
    results = Grid(
        title="Results",
        header=(*names, *(column_title(table, column) for column in table.columns)),
        rows=tuple(
            (*table.rows[row].texts(), *(cell_text(cell) for cell in line.values()))
            for row, line in table.cells.items()
        ),
    )
    behind = Grid(
        title="Statistics behind the results",
        header=(*names, "column", *STATISTICS[:4], f"change against {table.base_title or 'base'}", *STATISTICS[4:]),
        rows=tuple(
            (*table.rows[row].texts(), column_title(table, column), *statistics_words(cell, _NO_PAPER))
            for row, line in table.cells.items()
            for column, cell in line.items()
            if cell.runs
        ),
    )
    grids = tuple(grid for grid in (results, behind) if grid.rows)
    return Page(title=table.title, label="", grids=grids, notes=tuple(notes_of(table)), commands=())


def _record(table: PivotTable, cell: Measured) -> Iterator[tuple[str, object]]:
    row, column = table.rows[cell.place.row], table.columns[cell.place.column]
    settings: Mapping[str, object] = {**row.values, **column.values}
    yield from ((path, value) for path, value in settings.items() if path != METRIC)
    yield from {
        "metric": cell.metric,
        "simulated": table.simulated,
        "source": table.source,
        **csv_fields(cell, against=table.base_title, change_unit=change_of(cell)),
        "notes": "; ".join([*cell.notes, *cell.code]),
        "folders": " ".join(str(run.folder) for run in cell.runs),
    }.items()
