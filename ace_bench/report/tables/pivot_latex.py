"""Tables of a user's own runs for LaTeX, with ``booktabs`` and ``siunitx``, narrow enough for one of two columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import number
from ace_bench.report.tables.pivot import PivotTable
from ace_bench.report.tables.pivot_text import column_title, notes_of, row_names, significant
from ace_bench.report.tables.render import escaped

_HIGHER_IS_BETTER = "percent"
"""The unit of scores; of everything else, less is better."""


def pivot_latex(tables: Sequence[PivotTable]) -> str:
    """Format tables; intervals are in small print below the values, and the best value of a column is bold."""
    blocks = ["% needs \\usepackage{booktabs,siunitx}"]
    for table in tables:
        blocks += _table(table)
    return "\n".join(blocks) + "\n"


def _table(table: PivotTable) -> Iterator[str]:
    best = {column: _best([line[column] for line in table.cells.values()]) for column in table.columns}
    names = row_names(table)
    columns = "".join(_column([line[column] for line in table.cells.values()]) for column in table.columns)
    yield "\\begin{table}[t]"
    yield "\\centering\\footnotesize\\setlength{\\tabcolsep}{4pt}"
    yield "\\sisetup{detect-weight=true, mode=text, table-align-text-after=false}"
    yield f"\\caption{{{escaped(table.title)}.}}"
    yield f"\\begin{{tabular}}{{@{{}}{'l' * len(names)}{columns}@{{}}}}"
    yield "\\toprule"
    yield (
        " & ".join([*map(escaped, names), *(_header(column_title(table, column)) for column in table.columns)]) + r" \\"
    )
    yield "\\midrule"
    for row, line in table.cells.items():
        values = [_value(cell, best[column]) for column, cell in line.items()]
        yield " & ".join([*map(escaped, table.rows[row].texts()), *values]) + r" \\"
        intervals = [_interval(cell) for cell in line.values()]
        if any(intervals):
            yield " & ".join([""] * len(names) + intervals) + r" \\[2pt]"
    yield "\\bottomrule"
    yield "\\end{tabular}"
    yield "\\end{table}"
    yield from (f"% {note}" for note in notes_of(table))


def _best(cells: Sequence[Measured]) -> float | None:
    """Return the best value of a column as printed, ``None`` if there is nothing to choose from."""
    known = [_printed(cell) for cell in cells if cell.value is not None]
    if len(set(known)) < 2:
        return None
    return max(known) if cells_unit(cells) == _HIGHER_IS_BETTER else min(known)


def cells_unit(cells: Sequence[Measured]) -> str:
    """Return the unit of the cells of a column."""
    return next((cell.place.unit for cell in cells if cell.runs), "")


def _printed(cell: Measured) -> float:
    return float(number(cell.value, cell.place.unit).replace(",", ""))


def _column(cells: Sequence[Measured]) -> str:
    """Return an ``S`` column with room for the longest number."""
    texts = [number(cell.value, cell.place.unit).replace(",", "") for cell in cells if cell.value is not None] or ["0"]
    whole = max(len(text.partition(".")[0]) for text in texts)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    after = ", table-space-text-post={*}" if any(map(significant, cells)) else ""
    return f"S[table-format={whole}.{decimals}{after}]"


def _value(cell: Measured, best: float | None) -> str:
    if cell.value is None:
        return "{" + escaped({"-": "--"}.get(cell.state, cell.state) or "n/a") + "}"
    text = number(cell.value, cell.place.unit).replace(",", "")
    bold = "\\bfseries " if best is not None and _printed(cell) == best else ""
    return bold + text + "{*}" * significant(cell)


def _interval(cell: Measured) -> str:
    if cell.interval is None or cell.value is None:
        return ""
    low, high = (number(bound, cell.place.unit) for bound in (cell.interval.low, cell.interval.high))
    return f"{{\\scriptsize [{low}, {high}]}}"


def _header(text: str) -> str:
    """Stack the words of a header, so that columns stay narrow."""
    words = escaped(text).split()
    return "{" + (words[0] if len(words) < 2 else r"\shortstack{" + r" \\ ".join(words) + "}") + "}"
