"""Write the tables that a results folder can fill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ace_bench.core.errors import DataError
from ace_bench.report.experiments import Experiments
from ace_bench.report.tables.build import ResultTable, build_table
from ace_bench.report.tables.grids import PaperShown
from ace_bench.report.tables.render import csv, latex, markdown, page_of
from ace_bench.report.tables.results_index import ResultsIndex


def write_tables(
    gathered: ResultsIndex,
    out: Path,
    which: Sequence[str] = (),
    *,
    with_paper: bool = False,
    differences: bool = False,
) -> list[Path]:
    """Write ``table_<name>_<conditions>`` as ``.md``, ``.tex`` and ``.csv`` to ``out``, and all in ``tables.md``.

    ``which`` names tables (``2``, ``4a``; ``4`` is both); without, all are written that have a finished run. Each
    holds runs of one set of conditions. The paper's numbers stand beside comparable ones, or where ``with_paper`` asks
    for them; differences to them where the setting is the paper's, or with the numbers where ``differences`` asks for
    them. Raises ``ConfigError`` and ``DataError``.
    """
    names = table_names(gathered.experiments, which)
    out.mkdir(parents=True, exist_ok=True)
    files, texts = [], []
    for name in names:
        for table in _tables(name, gathered, even_empty=bool(which)):
            numbers = with_paper or differences or table.selection.variant.comparable
            paper = PaperShown(numbers=numbers, differences=differences)
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
