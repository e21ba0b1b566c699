"""Tables for LaTeX papers; ours, because pandas writes neither headings between rows nor notes below a table.

They use ``booktabs`` and the ``S`` columns of ``siunitx``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from ace_bench.report.escaping import latex as escaped
from ace_bench.report.escaping import one_line
from ace_bench.report.tables.formats import Page
from ace_bench.report.tables.grids import (
    COLLAPSED,
    OTHER_MODEL,
    OTHER_SETTING,
    SIGNIFICANT,
    SIMILAR,
    THESE_PLAYBOOKS,
    Grid,
    Number,
)
from ace_bench.report.tables.results_index import Width
from ace_bench.report.tables.table import MISSING

_FITS = {"column": 46, "page": 112}
"""Number of characters in small print that fit."""
_LONG = 50
"""Number of lines that fit on a page, with caption and notes."""
_WRAPPED = 44
"""Longer texts are broken into lines."""
_SMALL = 0.75
"""The size of intervals and changes relative to the values."""
_PACKAGES = ("booktabs", "graphicx", "pifont", "siunitx", "threeparttable", "xcolor")
_MARKS = (SIGNIFICANT, THESE_PLAYBOOKS, OTHER_SETTING, SIMILAR, COLLAPSED, OTHER_MODEL)
_MACROS = r"""\providecommand{\acebetter}[1]{\,{\scriptsize\textcolor{green!40!black}{(#1)}}}
\providecommand{\aceworse}[1]{\,{\scriptsize\textcolor{red!65!black}{(#1)}}}
\providecommand{\acesame}[1]{\,{\scriptsize\textcolor{black!60}{(#1)}}}
\providecommand{\acebounds}[1]{{\scriptsize\textcolor{black!60}{#1}}}
\providecommand{\acegroup}[2]{\multicolumn{#1}{c}{\textit{#2}}}
\providecommand{\aceyes}{\ding{51}}
\providecommand{\aceno}{\ding{55}}"""
"""How a paper may change what these tables look like: its own definitions count."""
_DOCUMENT = (
    "\\documentclass[10pt,twocolumn]{article}\n"
    "\\usepackage[T1]{fontenc}\n\\usepackage{mathptmx}\n\\usepackage[letterpaper,margin=0.75in]{geometry}"
)
"""Many machines have T1's usual fonts only as bitmaps (Type 3), which publishers refuse. Times has outlines."""


def latex(pages: Sequence[Page], width: Width = "", *, standalone: bool = False) -> str:
    """Format the grids of tables for LaTeX. Their notes are comments. A long table is split, a wide one scaled down.

    Without a ``width`` each takes what fits. ``standalone`` makes a document for ``pdflatex``.
    """
    needed = [f"\\usepackage{{{name}}}" for name in _PACKAGES]
    lines = [_DOCUMENT, *needed, "\\begin{document}"] if standalone else [f"% needs {' '.join(needed)}"]
    lines.append(_MACROS)
    for page in pages:
        for grid in page.grids:
            parts = _parts(grid)
            for index, part in enumerate(parts):
                lines += _float(page, part, index, width, last=index == len(parts) - 1)
        lines += [f"% {one_line(note)}" for note in page.notes]
    return "\n".join(lines) + "\n" + "\\end{document}\n" * standalone


def _parts(grid: Grid) -> list[Grid]:
    """Split a grid so that each part fits on a page."""
    starts, lines = [0], 0
    for index, row in enumerate(grid.rows):
        head = bool(grid.groups) and (index in starts or grid.groups[index] != grid.groups[index - 1])
        wrapped = any(len(word) > _WRAPPED for word in row if isinstance(word, str))
        taken = 1 + (wrapped or any(isinstance(word, Number) and word.bounds for word in row)) + head
        if lines + taken > _LONG:
            starts.append(index)
            lines = 0
        lines += taken
    ends = [*starts[1:], len(grid.rows)]
    return [
        replace(grid, rows=grid.rows[start:end], groups=grid.groups[start:end])
        for start, end in zip(starts, ends, strict=True)
        if end > start
    ]


def _float(page: Page, grid: Grid, index: int, wanted: Width, *, last: bool) -> Iterator[str]:
    """Yield the lines of one floating table, or of a part of it.

    The notes that explain its marks stand below the ``last`` part.
    """
    columns = [[*cells] for cells in zip(*grid.rows, strict=True)]
    room = sum(_room(name, cells) for name, cells in zip(grid.header, columns, strict=True))
    width = wanted or ("column" if room <= _FITS["column"] else "page")
    scaled = room > _FITS[width]
    kind = "table" if width == "column" else "table*"
    part = f". {grid.title}" * (len(page.grids) > 1)
    title, colon, caption = f"{page.title}{part}{', continued' * bool(index)}".partition(": ")
    yield f"\\begin{{{kind}}}[tp]"
    yield "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}"
    yield "\\sisetup{detect-weight=true, mode=text, group-separator={,}, group-minimum-digits=4}"
    yield f"\\caption{{\\textbf{{{escaped(title)}{colon.strip()}}} {escaped(caption)}}}"
    if page.label:
        yield f"\\label{{tab:{page.label}-{grid.title.split()[0].lower()}{f'-{index}' * bool(index)}}}"
    if scaled:
        yield "\\resizebox{\\linewidth}{!}{%"
    yield "\\begin{threeparttable}"
    fits = scaled or width == "page"
    table, stretched = ("tabular", "") if fits else ("tabular*", "{\\linewidth}")
    stretch = "@{\\extracolsep{\\fill}}" * (not fits)
    yield f"\\begin{{{table}}}{stretched}{{@{{}}{stretch}{''.join(map(_column, columns))}@{{}}}}"
    yield "\\toprule"
    yield from _header(grid, columns)
    yield from _body(grid, columns)
    yield "\\bottomrule"
    yield f"\\end{{{table}}}"
    yield from _notes(grid.legend if last else ())
    yield "\\end{threeparttable}" + "}" * scaled
    yield f"\\end{{{kind}}}"


def _header(grid: Grid, columns: Sequence[Sequence[str | Number]]) -> Iterator[str]:
    if grid.above:
        cells, rules, column = list[str](), list[str](), 1
        for name, same_name in groupby(grid.above):
            count = len(list(same_name))
            cells.append(f"\\multicolumn{{{count}}}{{c}}{{{escaped(name)}}}" if name else " & " * (count - 1))
            rules += [f"\\cmidrule(lr){{{column}-{column + count - 1}}}"] * bool(name)
            column += count
        yield " & ".join(cells) + r" \\"
        yield "".join(rules)
    yield " & ".join(_name(name, cells) for name, cells in zip(grid.header, columns, strict=True)) + r" \\"


def _body(grid: Grid, columns: Sequence[Sequence[str | Number]]) -> Iterator[str]:
    measured = [any(isinstance(word, Number) for word in cells) for cells in columns]
    group = None
    for index, row in enumerate(grid.rows):
        title = grid.groups[index] if grid.groups else ""
        if title != group:
            yield "\\midrule"
            if title:
                yield f"\\acegroup{{{len(row)}}}{{{escaped(title)}}} \\\\"
            group = title
        yield " & ".join(_word(word, aligned) for word, aligned in zip(row, measured, strict=True)) + r" \\"
        bounds = [word.bounds if isinstance(word, Number) else "" for word in row]
        if any(bounds):
            yield " & ".join(f"{{\\acebounds{{{text}}}}}" if text else "" for text in bounds) + r" \\[2pt]"


def _notes(legend: Sequence[str]) -> Iterator[str]:
    """Yield the notes that explain the marks. A mark before a colon stands apart."""
    if not legend:
        return
    yield "\\begin{tablenotes}[para,flushleft]\\scriptsize"
    marks = {note.partition(": ")[0]: note.partition(": ")[2] for note in legend if note[0] in _MARKS}
    yield f"\\item {' '.join(escaped(note) for note in legend if note[0] not in _MARKS)}"
    yield from (f"\\item[{escaped(mark)}] {escaped(text)}" for mark, text in marks.items())
    yield "\\end{tablenotes}"


def _room(name: str, cells: Sequence[str | Number]) -> float:
    """Return the width of a column in characters, and some space."""
    widths: list[float] = [len(word) for word in name.split()]
    for word in cells:
        if isinstance(word, Number):
            small = len(word.change) + 3 * bool(word.change) + len(word.marks)
            widths += [len(word.text) + _SMALL * small, _SMALL * len(word.bounds)]
        else:
            widths.append(min(len(word), _WRAPPED))
    return max(widths, default=0.0) + 1.5


def _column(cells: Sequence[str | Number]) -> str:
    """Return an ``S`` column with room for the longest number, or one of texts."""
    numbers = [word for word in cells if isinstance(word, Number)]
    if not numbers:
        longest = max((len(word) for word in cells if isinstance(word, str)), default=0)
        return "p{0.4\\linewidth}" if longest > _WRAPPED else "c" if longest == 1 else "l"
    parts = [text.partition(".") for word in numbers if (text := _plain(word)) is not None] or [("0", "", "")]
    integers, _, decimals = (max(map(len, texts)) for texts in zip(*parts, strict=True))
    after = max((_after(word) for word in numbers), key=len)
    # Marks of threeparttable take no room.
    after = after and "\\bfseries" * any(word.best for word in numbers) + after.replace("tnote", "textsuperscript")
    return f"S[table-format={integers}.{decimals}{f', table-space-text-post={{{after}}}' if after else ''}]"


def _name(name: str, cells: Sequence[str | Number]) -> str:
    """Stack the words of a header, so that columns stay narrow."""
    lines = [*map(escaped, one_line(name.replace("_", " ").replace(" ↑", "↑")).split())]
    alignment = "" if any(isinstance(word, Number) for word in cells) else "[l]"
    stacked = rf"\shortstack{alignment}{{" + r" \\ ".join(lines) + "}"
    return "{" + (stacked if len(lines) > 1 else "".join(lines)) + "}"


def _word(word: str | Number, aligned: bool) -> str:
    if isinstance(word, str):
        text = escaped("--" if word == MISSING else word)
        return f"{{{text}}}" if aligned else text
    plain = _plain(word)
    after = f"{{{_after(word)}}}" if _after(word) else ""
    return "\\bfseries " * word.best + (f"{{{escaped(word.text)}}}" if plain is None else plain) + after


def _after(word: Number) -> str:
    """Return the change and the marks that follow a number."""
    change = escaped(word.change).replace("-", "$-$")
    kind = {True: "better", False: "worse", None: "same"}[word.better]
    coloured = f"\\ace{kind}{{{change}}}" if change else ""
    return coloured + (f"\\tnote{{{escaped(word.marks)}}}" if word.marks else "")  # two would cover each other


def _plain(word: Number) -> str | None:
    """Return a number as ``siunitx`` reads it, or ``None`` for a text such as "n/a"."""
    text = word.text.replace(",", "")
    return text if text.lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit() else None
