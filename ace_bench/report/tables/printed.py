"""A table's results as a paper prints them: groups of rows, changes to the base in the cells, the best number bold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ace_bench.report.tables.cells import FEW_SEEDS, Measured
from ace_bench.report.tables.grids import (
    OTHER_SETTING,
    SIGNIFICANT,
    SIMILAR,
    THESE_PLAYBOOKS,
    Grid,
    Number,
    number,
    published_text,
    reservations,
    shown,
    signed,
)
from ace_bench.report.tables.table import Heading, Table

YES, NO = "✓", "✗"
"""Whether a method sees reference answers."""
_LEFT_OUT = ("missing", "left out", "-")
"""States of cells without a run, which a paper prints as a dash."""
_DASH = "–"


def printed_grid(table: Table) -> Grid:
    """Lay out the results for LaTeX, with the paper's number beside each of ours if the table shows them."""
    rows = {row: line for row, line in table.cells.items() if not all(cell.refused for cell in line.values())}
    lines = {row: table.rows[row] for row in rows}
    header = [*(table.printed_names or table.names)]
    above = [""] * len(header)
    words: dict[str, list[str | Number]] = {row: [*line.in_print] for row, line in lines.items()}
    for column, heading in table.columns.items():
        cells = {row: line[column] for row, line in rows.items()}
        best = _best(cells, lines, table.base)
        for row, cell in cells.items():
            words[row].append(_word(cell, lines[row], best=row in best))
        header += [" ".join(heading.in_print)]
        above += [heading.above]
        if table.paper.numbers and any(cell.published is not None for cell in cells.values()):
            header += ["paper"]
            above += [heading.above]
            for row, cell in cells.items():
                words[row].append(_DASH if cell.published is None else Number(text=published_text(cell)))
    return Grid(
        title="Results",
        header=tuple(header),
        rows=tuple(map(tuple, words.values())),
        legend=tuple(_legend(table, words.values())),
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
        better = (cell.change > 0) == (cell.place.unit == "percent") if cell.change else None
        word = replace(word, change=signed(cell.change, cell.change_unit), better=better)
    return replace(word, best=best)


def _best(cells: dict[str, Measured], lines: dict[str, Heading], base: str) -> set[str]:
    """Return the rows with the best number of their group, as it is shown, where the group has different ones.

    The group of the base row has none, unless it is the only one.
    """
    groups: dict[str, dict[str, float]] = {}
    for row, cell in cells.items():
        if cell.value is not None and not lines[row].part:
            groups.setdefault(lines[row].above, {})[row] = cell.value
    if base and len(groups) > 1:
        groups = {name: group for name, group in groups.items() if base not in group}
    found = set()
    for group in groups.values():
        unit = next(iter(cells.values())).place.unit
        texts = {row: number(value, unit) for row, value in group.items()}
        top = (max if unit == "percent" else min)(group, key=lambda row: group[row])
        found |= {row for row in group if texts[row] == texts[top]} if len(set(texts.values())) > 1 else set()
    return found


def _legend(table: Table, words: Iterable[Sequence[str | Number]]) -> Iterator[str]:
    """Explain what stands in the results; a mark before a colon is that of the cells."""
    cells = [word for line in words for word in line]
    numbers = [word for word in cells if isinstance(word, Number)]
    if any(word.change for word in numbers):
        units = {cell.change_unit for cell in table.measured if cell.change is not None}
        unit = "points" if units == {"points"} else "%" if units == {"percent"} else "points or %"
        yield f"In parentheses: change against {table.base_title} ({unit})."
    if any(word.bounds for word in numbers):
        yield "In brackets: 95% interval of a score; for other numbers, smallest and largest over seeds."
    if any(word.best for word in numbers):
        grouped = any(heading.above for heading in table.rows.values())
        yield f"Bold: best of {'its group' if grouped else 'a column'}."
    if NO in cells:
        yield f"{YES}: reference answers are seen; {NO}: at most whether an answer was right."
    tested = sum(cell.comparison is not None for cell in table.measured)
    if tested:
        yield f"{SIGNIFICANT}: differs from {table.base_title} (p < 0.05, paired, Holm over {tested} comparisons)."
    if any(THESE_PLAYBOOKS in word.marks for word in numbers):
        yield f"{THESE_PLAYBOOKS}: so do these playbooks; a method takes {FEW_SEEDS} seeds on each side that adapts."
    if any(OTHER_SETTING in word.marks for word in numbers):
        yield f"{OTHER_SETTING}: not the paper's setting."
    if any(SIMILAR in word.marks for word in numbers):
        yield f"{SIMILAR}: not the planned run."
    yield from reservations(table)
    if any(cell.state in _LEFT_OUT for cell in table.measured):
        yield f"{_DASH}: no finished run."
