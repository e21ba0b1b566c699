"""Tables of a user's own runs for LaTeX, with ``booktabs`` and ``siunitx``, in one of two columns where it fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ace_bench.report.escaping import latex, one_line
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import NOT_KNOWN, number
from ace_bench.report.tables.pivot_names import MISSING
from ace_bench.report.tables.pivot_text import bounds_text, column_title, notes_of, row_names, significant
from ace_bench.report.tables.pivot_values import PivotTable

_HIGHER_IS_BETTER = "percent"
"""The unit of scores; of everything else, less is better."""
_COLUMN, _PAGE = 56, 118
"""Number of characters in small print that fit into one of two columns, and into a page."""


def pivot_latex(tables: Sequence[PivotTable]) -> str:
    """Format tables; intervals are in small print below the values, and the best value of a column is bold."""
    blocks = ["% needs \\usepackage{booktabs,graphicx,siunitx}"]
    for table in tables:
        blocks += _table(table)
    return "\n".join(blocks) + "\n"


def _table(table: PivotTable) -> Iterator[str]:
    by_column = {column: [line[column] for line in table.cells.values()] for column in table.columns}
    best = {column: _best(cells) for column, cells in by_column.items()}
    names = row_names(table)
    headers = {column: _header(column_title(table, column)) for column in table.columns}
    width = sum(_width(cells, column_title(table, column)) for column, cells in by_column.items())
    width += sum(
        max(map(len, texts)) for texts in zip(names, *(row.texts() for row in table.rows.values()), strict=True)
    )
    kind = "table" if width <= _COLUMN else "table*"
    scaled = width > _PAGE
    yield f"\\begin{{{kind}}}[t]"
    yield "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}"
    yield "\\sisetup{detect-weight=true, mode=text, table-align-text-after=false}"
    yield f"\\caption{{{latex(table.title)}. {latex(_legend(table))}}}"
    if scaled:
        yield "\\resizebox{\\linewidth}{!}{%"
    yield f"\\begin{{tabular}}{{@{{}}{'l' * len(names)}{''.join(map(_column, by_column.values()))}@{{}}}}"
    yield "\\toprule"
    yield " & ".join([*(_header(name.replace("_", " "), "[l]") for name in names), *headers.values()]) + r" \\"
    yield "\\midrule"
    for row, line in table.cells.items():
        values = [_value(cell, best[column]) for column, cell in line.items()]
        yield " & ".join([*map(latex, table.rows[row].texts()), *values]) + r" \\"
        intervals = [_interval(cell) for cell in line.values()]
        if any(intervals):
            yield " & ".join([""] * len(names) + intervals) + r" \\[2pt]"
    yield "\\bottomrule"
    yield "\\end{tabular}" + "}" * scaled
    yield f"\\end{{{kind}}}"
    yield from (f"% {one_line(note)}" for note in notes_of(table))


def _legend(table: PivotTable) -> str:
    """Explain the marks of a table in its caption."""
    parts = ["In brackets: 95% interval of a score; for other numbers, smallest and largest over seeds."]
    parts += ["Bold: best of a column."] if len(table.rows) > 1 else []
    tested = sum(cell.comparison is not None for cell in table.measured)
    if tested:
        parts.append(f"*: differs from {table.base_title} (p < 0.05, paired, Holm over {tested} comparisons).")
    return " ".join(parts)


def _width(cells: Sequence[Measured], title: str) -> int:
    """Return the width of a column in characters, and some space."""
    words = [*title.split(), *map(_text, cells), *map(bounds_text, cells)]
    return max(map(len, words)) + 2


def _best(cells: Sequence[Measured]) -> str:
    """Return the best value of a column as printed, "" if there is nothing to choose from."""
    known = {_text(cell): cell for cell in cells if cell.value is not None}
    if len(known) < 2:
        return ""
    higher = {cell.place.unit for cell in known.values()} == {_HIGHER_IS_BETTER}
    return (max if higher else min)(known, key=lambda text: known[text].value or 0.0)


def _column(cells: Sequence[Measured]) -> str:
    """Return an ``S`` column with room for the longest number."""
    texts = [_text(cell) for cell in cells if cell.value is not None] or ["0"]
    whole = max(len(text.partition(".")[0]) for text in texts)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    after = ", table-space-text-post={*}" if any(map(significant, cells)) else ""
    return f"S[table-format={whole}.{decimals}{after}]"


def _value(cell: Measured, best: str) -> str:
    if cell.value is None:
        return "{" + latex({MISSING: "--"}.get(cell.state, cell.state) or NOT_KNOWN) + "}"
    bold = "\\bfseries " if _text(cell) == best else ""
    return bold + _text(cell) + "{*}" * significant(cell)


def _text(cell: Measured) -> str:
    return cell.state if cell.value is None else number(cell.value, cell.place.unit).replace(",", "")


def _interval(cell: Measured) -> str:
    return f"{{\\scriptsize {bounds_text(cell)}}}" if bounds_text(cell) else ""


def _header(text: str, place: str = "") -> str:
    """Stack the words of a header, so that columns stay narrow."""
    words = [*map(latex, one_line(text).split())]
    return "{" + (words[0] if len(words) < 2 else rf"\shortstack{place}{{" + r" \\ ".join(words) + "}") + "}"
