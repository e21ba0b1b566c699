"""Tables as Markdown, LaTeX (``booktabs`` and ``siunitx``) and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ace_bench.report import escaping
from ace_bench.report.escaping import one_line
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import Grid, Number, notes_of, remarks, result_grid, statistics_grid
from ace_bench.report.tables.table import MISSING, Table

_COLUMN, _PAGE = 56, 118
"""Number of characters in small print that fit into one of two columns, and into a page."""
_LONG = 60
"""Number of rows that fit on a page."""
_PACKAGES = "% needs \\usepackage{booktabs,graphicx,siunitx}"


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


def latex(page: Page) -> str:
    """Format a table for LaTeX; intervals are in small print below the values, notes are comments.

    A narrow table takes one of two columns, a wide one is scaled down to the page, and a long one is split.
    """
    lines = [_PACKAGES]
    for grid in page.grids:
        for start in range(0, len(grid.rows), _LONG):
            lines += _latex_table(page, grid, start)
    return "\n".join([*lines, *(f"% {one_line(note)}" for note in page.notes)]) + "\n"


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


def _latex_table(page: Page, grid: Grid, start: int) -> Iterator[str]:
    by_column = [[*words] for words in zip(*grid.rows, strict=True)]
    width = sum(_width(name, words) for name, words in zip(grid.header, by_column, strict=True))
    kind = "table" if width <= _COLUMN else "table*"
    caption = f"{page.title}. {grid.title}{', continued' * bool(start)}. {grid.legend}".strip()
    yield f"\\begin{{{kind}}}[t]"
    yield "\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}"
    yield "\\sisetup{detect-weight=true, mode=text, table-align-text-after=false}"
    yield f"\\caption{{{escaping.latex(caption)}}}"
    if page.label:
        yield f"\\label{{tab:{page.label}-{grid.title.split()[0].lower()}{f'-{start}' * bool(start)}}}"
    if width > _PAGE:
        yield "\\resizebox{\\linewidth}{!}{%"
    yield f"\\begin{{tabular}}{{@{{}}{''.join(map(_column, by_column))}@{{}}}}"
    yield "\\toprule"
    yield " & ".join(_header(name, words) for name, words in zip(grid.header, by_column, strict=True)) + r" \\"
    yield "\\midrule"
    measured = [any(isinstance(word, Number) for word in words) for words in by_column]
    for row in grid.rows[start : start + _LONG]:
        yield " & ".join(_latex_word(word, aligned) for word, aligned in zip(row, measured, strict=True)) + r" \\"
        bounds = [word.bounds if isinstance(word, Number) else "" for word in row]
        if any(bounds):
            yield " & ".join(f"{{\\scriptsize {text}}}" if text else "" for text in bounds) + r" \\[2pt]"
    yield "\\bottomrule"
    yield "\\end{tabular}" + "}" * (width > _PAGE)
    yield f"\\end{{{kind}}}"


def _width(name: str, words: Sequence[str | Number]) -> int:
    """Return the width of a column in characters, and some space."""
    parts = [part for word in words for part in ((word.text, word.bounds) if isinstance(word, Number) else (word,))]
    return max(map(len, (*name.split(), *parts))) + 2


def _column(words: Sequence[str | Number]) -> str:
    """Return an ``S`` column with room for the longest number, or one of texts."""
    numbers = [word for word in words if isinstance(word, Number)]
    if not numbers:
        return "l"
    texts = [text for word in numbers if (text := _plain(word)) is not None] or ["0"]
    whole = max(len(text.partition(".")[0]) for text in texts)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    marks = max((_marks(word) for word in numbers), key=len)
    after = f", table-space-text-post={{{marks}}}" if marks else ""
    return f"S[table-format={whole}.{decimals}{after}]"


def _header(name: str, words: Sequence[str | Number]) -> str:
    """Stack the words of a header, so that columns stay narrow."""
    found = [*map(escaping.latex, one_line(name.replace("_", " ")).split())]
    place = "" if any(isinstance(word, Number) for word in words) else "[l]"
    stacked = rf"\shortstack{place}{{" + r" \\ ".join(found) + "}"
    return "{" + (stacked if len(found) > 1 else "".join(found)) + "}"


def _latex_word(word: str | Number, aligned: bool) -> str:
    if isinstance(word, str):
        text = escaping.latex("--" if word == MISSING else word)
        return f"{{{text}}}" if aligned else text
    plain = _plain(word)
    marks = f"{{{_marks(word)}}}" if word.marks else ""
    return "\\bfseries " * word.best + (f"{{{escaping.latex(word.text)}}}" if plain is None else plain) + marks


def _marks(word: Number) -> str:
    return word.marks.replace("†", r"\dag{}").replace("‡", r"\ddag{}")


def _plain(word: Number) -> str | None:
    """Return a number as ``siunitx`` reads it; ``None`` for a text such as "n/a"."""
    text = word.text.replace(",", "")
    return text if text.lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit() else None


def _record(table: Table, row: str, column: str, cell: Measured) -> dict[str, object]:
    tested = cell.comparison
    bounds = tested.interval if tested else None
    changed = cell.change is not None
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
        "change_unit": cell.change_unit if changed else None,
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
        published = cell.place.paper.value if cell.place.paper else None
        found |= {"paper": published, "ours_less_paper": table.paper.difference(cell)}
    return found
