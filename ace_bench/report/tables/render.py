"""Tables as Markdown, LaTeX (booktabs) and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_bench.report import escaping
from ace_bench.report.escaping import csv_of
from ace_bench.report.tables.build import ResultTable
from ace_bench.report.tables.cells import Measured, csv_fields
from ace_bench.report.tables.cost_grids import cost_grid, costs_of
from ace_bench.report.tables.grids import Grid, PaperShown, footnotes, remarks, result_grid, statistics_grid

_WIDE, _LONG = 7, 60
"""Numbers of columns and of rows that fit on a page."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """The text of a table; ``label`` starts its LaTeX labels."""

    title: str
    label: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    commands: tuple[str, ...]


def page_of(table: ResultTable, commands: Sequence[str], paper: PaperShown) -> Page:
    """Return the text of a table: results, statistics, costs, notes, and the commands of missing runs."""
    grids = [result_grid(table, paper), statistics_grid(table, paper)]
    if not table.experiment.combined:  # otherwise a page of their own
        grids.append(cost_grid(table))
    return Page(
        title=table.title,
        label=f"{table.name}-{table.selection.variant.slug}",
        grids=tuple(grid for grid in grids if grid.rows),
        notes=tuple(" ".join(note.split()) for note in footnotes(table, paper)),
        commands=tuple(commands),
    )


def costs_page(table: ResultTable) -> Page:
    """Return the text of a table's costs."""
    return Page(
        title=f"Costs: {table.title}",
        label=f"{table.name}-costs-{table.selection.variant.slug}",
        grids=(cost_grid(table),),
        notes=(
            "Means over seeds. Online, prediction and learning are one pass, and all of it is adaptation. Latency is "
            "wall time without waiting on retries, model time the sum over all calls.",
        ),
        commands=(),
    )


def costs_csv(table: ResultTable) -> str:
    """Format one line per run and stage, with numbers in full precision; unknown values are empty."""
    lines = []
    for cost in costs_of(table):
        line = table.lines[cost.row]
        place = {"row": cost.row, "method": line.label, "adaptation": line.stage, "labels": line.labels}
        lines.append({**_conditions(table), **place, "column": cost.column, "stage": cost.stage, **cost.amounts})
    return csv_of(lines)


def markdown(page: Page) -> str:
    """Format a table as Markdown."""
    parts = [f"## {escaping.markdown(page.title)}"]
    parts += [
        f"### {escaping.markdown(grid.title)}\n\n{escaping.markdown_table(grid.header, grid.rows)}"
        for grid in page.grids
    ]
    parts.append("\n".join(f"- {escaping.markdown(note)}" for note in page.notes))
    if page.commands:
        parts.append(f"{len(page.commands)} runs are missing; run these commands in this order:")
        parts.append("```\n" + "\n".join(map(escaping.one_line, page.commands)) + "\n```")
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(page: Page) -> str:
    """Format a table for LaTeX with ``booktabs`` and ``graphicx``; notes are comments.

    Wide tables are scaled down to the width of the page, and long ones are split.
    """
    blocks = []
    parts = [(grid, start) for grid in page.grids for start in range(0, len(grid.rows), _LONG)]
    for grid, start in parts:
        label = f"tab:{page.label}-{grid.title.split()[0].lower()}" + f"-{start}" * bool(start)
        caption = f"{page.title}. {grid.title}{', continued' * bool(start)}."
        wide = len(grid.header) > _WIDE
        blocks += [
            r"\begin{table}[t]",
            r"\centering\footnotesize",
            rf"\caption{{{escaping.latex(caption)}}}",
            rf"\label{{{label}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{{'l' * len(grid.header)}}}",
            r"\toprule",
            _latex_row(grid.header),
            r"\midrule",
            *map(_latex_row, grid.rows[start : start + _LONG]),
            r"\bottomrule",
            r"\end{tabular}" + "}" * wide,
            "\\end{table}\n",
        ]
    return "\n".join([*blocks, *(f"% {escaping.one_line(note)}" for note in page.notes)]) + "\n"


def csv(table: ResultTable, paper: PaperShown) -> str:
    """Format one line per cell, with numbers in full precision; unknown values are empty."""
    return csv_of([_record(table, cell, paper) for cell in table.measured])


def _latex_row(words: Sequence[str]) -> str:
    return " & ".join(map(escaping.latex, words)) + r" \\"


def _conditions(table: ResultTable) -> dict[str, object]:
    variant = table.selection.variant
    return {
        "table": table.name,
        "conditions": " ".join(variant.overrides),
        "simulated": variant.simulated,
        "source": variant.source,
    }


def _record(table: ResultTable, cell: Measured, paper: PaperShown) -> dict[str, object]:
    line = table.lines[cell.place.row]
    found: dict[str, object] = {
        **_conditions(table),
        "row": cell.place.row,
        "method": line.label,
        "adaptation": line.stage,
        "labels": line.labels,
        "column": cell.place.column,
        **csv_fields(cell, against=table.paper.against, change_unit=table.change),
        "one_seed_about": cell.scope,
        "not_the_papers_setting": "; ".join(cell.deviations),
        "notes": "; ".join(remarks(cell, paper)),
        "folders": " ".join(str(Path(*run.folder.parts[-4:])) for run in cell.runs),
    }
    if paper.numbers:
        published = cell.place.paper.value if cell.place.paper else None
        found |= {"paper": published, "ours_less_paper": paper.difference(cell)}
    return found
