"""Write the tables for the finished runs of a results folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_bench.report.experiments import Experiments
from ace_bench.report.tables.build import ResultTable, build_table
from ace_bench.report.tables.grids import PaperShown
from ace_bench.report.tables.render import csv, latex, markdown, page_of
from ace_bench.report.tables.results_index import ALL, ResultsIndex, Wanted


def write_tables(index: ResultsIndex, out: Path, wanted: Wanted = ALL) -> list[Path]:
    """Write ``table_<name>_<conditions>`` as ``.md``, ``.tex`` and ``.csv`` to ``out``, and all in ``tables.md``.

    Names are those of tables (``2``, ``4a``; ``4`` is both); without names, all tables with a finished run are written.
    Each shows runs of one set of conditions. Raises ``ConfigError`` and ``DataError``.
    """
    names = table_names(index.experiments, wanted.names)
    out.mkdir(parents=True, exist_ok=True)
    files, texts = [], []
    for name in names:
        for table in _tables(name, index, even_empty=bool(wanted.names)):
            numbers = wanted.with_paper or wanted.differences or table.selection.variant.comparable
            paper = PaperShown(numbers=numbers, differences=wanted.differences)
            page = page_of(table, _commands(table, index), paper)
            texts.append(markdown(page))
            stem = f"table_{name.rjust(3 if name[-1].isalpha() else 2, '0')}_{table.selection.variant.slug}"
            for suffix, text in (
                ("md", texts[-1]),
                ("tex", latex(page)),
                ("csv", csv(table, paper)),
            ):
                files.append(out / f"{stem}.{suffix}")
                files[-1].write_text(text)
    files.append(out / "tables.md")
    files[-1].write_text("\n".join(["# Tables\n", *texts, *_damages(index)]))
    return files


def table_names(experiments: Experiments, which: Sequence[str]) -> list[str]:
    """Return the names of the tables in ``which``, all if it is empty; raises ``DataError``."""
    known = [name for name, plan in experiments.by_name.items() if plan.layout == "table" and plan.rows]
    chosen = []
    for wanted in which or known:
        found = [name for name in known if wanted in (name, name.rstrip("ab"))]
        if not found:
            raise DataError(f"there is no table {wanted}; there are {', '.join(known)}")
        chosen += found
    return chosen


def _tables(name: str, index: ResultsIndex, *, even_empty: bool) -> Iterator[ResultTable]:
    paper = index.experiments.paper
    models = {table.model for table in paper.tables.values()}
    model = paper.table(index.experiments.by_name[name].paper).model
    any_runs = False
    for selection in index.selections:
        # Runs with the model of another table of the paper belong to that table.
        if selection.variant.backbone == model or selection.variant.backbone not in models:
            table = build_table(name, index.experiments, selection)
            if not table.empty:
                any_runs = True
                yield table
    if even_empty and not any_runs:
        yield build_table(name, index.experiments, index.empty_selection(model))


def _commands(table: ResultTable, index: ResultsIndex) -> list[str]:
    planned = index.experiments.runs(table.name)
    return [command for run in planned for command in table.selection.missing(run, index.results)]


def _damages(index: ResultsIndex) -> list[str]:
    if not index.found.damaged:
        return []
    return ["## Run folders that cannot be read\n", *(f"- {damaged.reason}" for damaged in index.found.damaged), ""]
