"""Write the tables that a results folder can fill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_bench.report.experiments import Experiments
from ace_bench.report.tables.build import ResultTable, build_table
from ace_bench.report.tables.grids import PaperShown
from ace_bench.report.tables.render import csv, latex, markdown, page_of
from ace_bench.report.tables.results_index import ALL, ResultsIndex, Wanted


def write_tables(gathered: ResultsIndex, out: Path, wanted: Wanted = ALL) -> list[Path]:
    """Write ``table_<name>_<conditions>`` as ``.md``, ``.tex`` and ``.csv`` to ``out``, and all in ``tables.md``.

    Names are those of tables (``2``, ``4a``; ``4`` is both); without names all tables with a finished run are written.
    Each holds runs of one set of conditions. Raises ``ConfigError`` and ``DataError``.
    """
    names = table_names(gathered.experiments, wanted.names)
    out.mkdir(parents=True, exist_ok=True)
    files, texts = [], []
    for name in names:
        for table in _tables(name, gathered, even_empty=bool(wanted.names)):
            numbers = wanted.with_paper or wanted.differences or table.selection.variant.comparable
            paper = PaperShown(numbers=numbers, differences=wanted.differences)
            page = page_of(table, _commands(table, gathered), paper)
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
    files[-1].write_text("\n".join(["# Tables\n", *texts, *_damages(gathered)]))
    return files


def table_names(experiments: Experiments, which: Sequence[str]) -> list[str]:
    """Return the experiments laid out as tables that ``which`` names, all if it is empty; raises ``DataError``."""
    known = [name for name, plan in experiments.by_name.items() if plan.layout == "table" and plan.rows]
    chosen = []
    for wanted in which or known:
        found = [name for name in known if wanted in (name, name.rstrip("ab"))]
        if not found:
            raise DataError(f"there is no table {wanted}; there are {', '.join(known)}")
        chosen += found
    return chosen


def _tables(name: str, gathered: ResultsIndex, *, even_empty: bool) -> Iterator[ResultTable]:
    paper = gathered.experiments.paper
    models = {table.model for table in paper.tables.values()}
    model = paper.table(gathered.experiments.by_name[name].paper).model
    any_runs = False
    for selection in gathered.selections:
        # Runs with a model of another of the paper's tables are that table's.
        if selection.variant.backbone == model or selection.variant.backbone not in models:
            table = build_table(name, gathered.experiments, selection)
            if not table.empty:
                any_runs = True
                yield table
    if even_empty and not any_runs:
        yield build_table(name, gathered.experiments, gathered.nothing(model))


def _commands(table: ResultTable, gathered: ResultsIndex) -> list[str]:
    planned = gathered.experiments.runs(table.name)
    return [command for run in planned for command in table.selection.missing(run, gathered.results)]


def _damages(gathered: ResultsIndex) -> list[str]:
    if not gathered.found.damaged:
        return []
    return ["## Run folders that cannot be read\n", *(f"- {damaged.reason}" for damaged in gathered.found.damaged), ""]
