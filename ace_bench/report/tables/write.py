"""Write the tables for the finished runs of a results folder, with the costs of the runs by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ace_bench.core.errors import DataError
from ace_bench.core.measurement import Measurement
from ace_bench.report.escaping import csv_of
from ace_bench.report.experiments import Experiments
from ace_bench.report.paper.tables import Experiment
from ace_bench.report.records import marks_of
from ace_bench.report.tables.cells import mean_of
from ace_bench.report.tables.claim_result import claim_record, claims_grid, claims_notes, printed_claims
from ace_bench.report.tables.claims import claim_results
from ace_bench.report.tables.field import efficiency_grid, pairs_grid, with_pairs
from ace_bench.report.tables.formats import Page, csv, markdown, page_of, printed_grid
from ace_bench.report.tables.grids import Grid, number
from ace_bench.report.tables.latex import latex
from ace_bench.report.tables.paper_tables import paper_table
from ace_bench.report.tables.results_index import ALL, ResultsIndex, Selection, Wanted
from ace_bench.report.tables.table import Continuing, Heading, PaperShown, Table
from ace_bench.report.tables.unfinished import continuing
from ace_bench.store.files import write_files

CLAIMS = "claims"
"""Name of the table of the paper's claims."""
TABLES = "tables.md"
"""Name of the file that holds all tables."""
_OTHER = re.compile(r"[^\w.-]+")
"""Characters that are replaced in file names."""

_PATHS = {
    "rollouts": "rollouts.{stage}",
    "tokens in": "tokens.{stage}.in",
    "tokens out": "tokens.{stage}.out",
    "cached share": "cache.{stage}.share",
    "dollars": "usd.{stage}",
    "latency (s)": "timing.{stage}.wall_without_waiting_s",
    "model time (s)": "timing.{stage}.model_s",
}
"""Costs and their metrics. Latency is wall time without time lost to retries, model time the sum over all
calls, as if they were made one after another."""
_COSTS = ("calls", *_PATHS)


class TableFiles(NamedTuple):
    """A table: the name of its files without the ending, its text, its CSV, and its results as a paper prints them."""

    stem: str
    page: Page
    csv: str
    printed: Grid | None = None

    def latex(self, wanted: Wanted) -> str:
        """Format it for LaTeX."""
        page = self.page
        if self.printed is not None:
            note = f"Statistics of each cell, and costs, if any: {self.stem}.md and {self.stem}.csv."
            page = replace(page, grids=(self.printed,), notes=(*page.notes, note))
        return latex([page], wanted.width, standalone=wanted.standalone)


def write_tables(
    index: ResultsIndex,
    out: Path,
    wanted: Wanted = ALL,
    *,
    measured: Mapping[str, TableFiles] = MappingProxyType({}),
    note: Callable[[Page], object] | None = None,
) -> list[Path]:
    """Write ``table_<name>_<conditions>`` as ``.md``, ``.tex`` and ``.csv`` to ``out``.

    ``tables.md`` holds all of them, and where names are given also those that an earlier command wrote to ``out``.

    Names are names of tables, such as ``2`` and ``4a``, with ``4`` for both its parts, and ``claims``. Without names
    all tables with a finished run are written, except for experiments that list methods. Each shows runs of one set of
    conditions. ``measured`` are tables of measurements by name, which are also written. ``note`` gets each table.
    Raises ``ConfigError``, ``DataError`` and ``FileUnwritable``.
    """
    names = [name for name in wanted.names if name != CLAIMS and name not in measured]
    names = table_names(index.experiments, names) if names or not wanted.names else []
    files: dict[Path, str] = {}
    for table in chain(_pages(names, index, wanted), measured.values()):
        if note:
            note(table.page)
        texts = {"md": markdown(table.page), "tex": table.latex(wanted), "csv": table.csv}
        files |= {out / f"{table.stem}.{suffix}": texts[suffix] for suffix in wanted.formats}
    if "md" not in wanted.formats:
        return write_files(files)
    markdown_files = [file for file in files if file.suffix == ".md"]
    if wanted.names:
        markdown_files = sorted({*markdown_files, *out.glob("table_*.md")})
    parts = [files[file] if file in files else file.read_text(encoding="utf-8") for file in markdown_files]
    wrong = {
        "that cannot be read": index.found.damaged,
        "with another run's name, or with another result of the same run": index.found.problems,
    }
    listed = [
        "\n".join([f"## Run folders {title}\n", *(f"- {problem.reason}" for problem in problems), ""])
        for title, problems in wrong.items()
        if problems
    ]
    return write_files({**files, out / TABLES: "\n".join(["# Tables\n", *parts, *listed])})


def measured_table(
    name: str, experiment: Experiment, measurement: Measurement, backbone: tuple[str, ...]
) -> TableFiles:
    """Lay out a measurement. ``backbone`` is the option's name, and the model's if the user named one."""
    slug = _OTHER.sub("_", "-".join((*backbone, *["simulated"] * measurement.simulated)))
    rows = tuple(tuple(value if isinstance(value, str) else number(value) for value in row) for row in measurement.rows)
    notes = [*([experiment.notes] if experiment.notes else []), *measurement.notes]
    title = f"{experiment.title} ({name}): measured with {', '.join(backbone)}"
    page = Page(
        title=" ".join(filter(None, (title, marks_of(simulated=measurement.simulated, source="")))),
        label=f"{name}-{slug}",
        grids=(Grid(title="Results", header=measurement.columns, rows=rows),),
        notes=tuple(" ".join(note.split()) for note in notes),
    )
    marks = {"table": name, "backbone": " ".join(backbone), "simulated": measurement.simulated}
    records = [{**marks, **dict(zip(measurement.columns, row, strict=True))} for row in measurement.rows]
    return TableFiles(f"table_{name}_{slug}", page, csv_of(records))


def table_names(experiments: Experiments, which: Sequence[str]) -> list[str]:
    """Return the names of the tables in ``which``, all if it is empty. Raises ``DataError``."""
    names = [name for name, plan in experiments.by_name.items() if plan.layout == "table" and plan.rows]
    chosen = []
    for wanted in which or [name for name in names if name not in experiments.combined]:
        matching = [name for name in names if wanted in (name, name.rstrip("ab"))]
        if wanted in experiments.others and not matching:
            raise DataError(
                f"{wanted} is a measurement without runs; `ace-bench reproduce experiment={wanted}` makes it"
            )
        if not matching:
            raise DataError(f"there is no table {wanted}; there are {', '.join(names)} and {CLAIMS}")
        chosen += matching
    return chosen


def _pages(names: Sequence[str], index: ResultsIndex, wanted: Wanted) -> Iterator[TableFiles]:
    for name in names:
        plan = index.experiments.by_name[name]
        for selection, table in tables_of(name, index, wanted):
            slug = selection.variant.slug
            stem = f"table_{name.rjust(3 if name[-1].isalpha() else 2, '0')}_{slug}"
            if plan.combined:
                together, pairs = with_pairs(table)
                more_grids = [efficiency_grid(together), pairs_grid(together, pairs)]
            else:
                together, more_grids = table, [_cost_grid(table)]
            page = page_of(replace(together, continuing=_continuing(name, table, selection, index)), more_grids)
            yield TableFiles(stem, page, csv([together]), printed_grid(together))
            if plan.combined and not table.empty:
                yield _costs(table, f"table_{name}_costs_{slug}")
    if CLAIMS in wanted.names or not wanted.names:
        yield from _claims(index, wanted)


def tables_of(name: str, index: ResultsIndex, wanted: Wanted) -> Iterator[tuple[Selection, Table]]:
    """Yield a table for each set of conditions that has runs, an empty one if none has and it is asked for."""
    experiment = index.experiments.by_name[name]
    model = experiment.model if experiment.section else ""  # "": all models

    def build(selection: Selection) -> Table:
        paper = PaperShown(
            numbers=bool(experiment.section) and wanted.shows_paper(comparable=selection.variant.comparable),
            differences=wanted.differences,
        )
        return paper_table(name, selection, index.refusal, paper=paper, looks=wanted.looks)

    any_runs, refused = False, list[tuple[Selection, Table]]()
    for selection in index.selections:
        if model and selection.preset != model and (selection.preset or not _stands_in(selection, wanted)):
            continue
        table, members = build(selection), {run.folder for run in selection.members}
        if any(
            run.folder in members or not cell.differs
            for cell in table.measured
            for run in (*cell.runs, *cell.unfinished)
        ):
            any_runs = True
            yield selection, table
        elif any(cell.elsewhere for cell in table.measured):
            refused.append((selection, table))
    if wanted.names and not any_runs:
        empty = index.empty_selection(experiment.model)
        yield from refused or [(empty, build(empty))]


def _stands_in(selection: Selection, wanted: Wanted) -> bool:
    """Whether a model that no table is about is shown in the tables: a stand-in always, others where asked for."""
    return bool(wanted.names) or selection.variant.simulated


def _claims(index: ResultsIndex, wanted: Wanted) -> Iterator[TableFiles]:
    """Yield the claims table of each set of conditions with runs for at least one claim.

    Runs of the paper's other models under the same conditions fill the claims about these models.
    """
    model = index.experiments.table("1").model
    for selection, other_models in _by_conditions(index, model):
        variant = selection.variant
        if not (selection.preset or _stands_in(selection, wanted)):
            continue
        results = claim_results(index.experiments, selection, other_models, looks=wanted.looks)
        if all(result.value is None for result in results):
            continue
        numbers = wanted.shows_paper(comparable=variant.comparable)
        page = Page(
            title=f"The paper's claims: runs with {variant.label}",
            label=f"{CLAIMS}-{variant.slug}",
            grids=(claims_grid(results, numbers=numbers),),
            notes=tuple(claims_notes(results, simulated=variant.simulated)),
        )
        records = csv_of([claim_record(result, variant, numbers=numbers) for result in results])
        printed = printed_claims(results, simulated=variant.simulated, numbers=numbers)
        yield TableFiles(f"table_{CLAIMS}_{variant.slug}", page, records, printed)


def _by_conditions(index: ResultsIndex, model: str) -> Iterator[tuple[Selection, Mapping[str, Selection]]]:
    """Yield the runs of the paper's main model with its other models, then each model of one's own.

    Without runs of the main model, its part is empty.
    """
    alike: dict[tuple[str, ...], list[Selection]] = {}
    for selection in index.selections:
        if selection.preset:
            conditions = tuple(text for text in selection.variant.overrides if not text.startswith("backbone"))
            alike.setdefault(conditions, []).append(selection)
    for selections in alike.values():
        by_model = {selection.preset: selection for selection in selections}
        mains = [selection for selection in selections if selection.preset == model]
        yield from ((main, by_model) for main in mains or [index.empty_selection(model)])
    yield from ((selection, {}) for selection in index.selections if not selection.preset)


def _continuing(name: str, table: Table, selection: Selection, index: ResultsIndex) -> Continuing | None:
    """Return what makes the runs that have not finished and that the program does not refuse."""
    replaced = {cell.planned for cell in table.measured if cell.runs and cell.differs}
    refused = {cell.planned for cell in table.measured if cell.refused} | replaced
    plans = (plan for plan in index.experiments.runs(name) if plan not in refused)
    planned = [one for plan in plans for one in selection.missing(plan, index.results)]
    # It would also make the runs in whose place others are shown.
    of_all = "" if replaced else selection.command_of_all(name, index.results)
    return continuing(name, planned, selection.members, index.experiments, of_all)


def _cost_grid(table: Table) -> Grid:
    """Give the cost of each run by stage."""
    rows = [
        (*row.texts, column.title, stage, *map(number, amounts.values()))
        for row, column, stage, amounts in _costs_of(table)
    ]
    return Grid(title="Costs of a run", header=(*table.names, "column", "stage", *_COSTS), rows=tuple(rows))


def _costs(table: Table, stem: str) -> TableFiles:
    """Return the costs of a table's runs, and in CSV a line for each run and stage. Unknown values are empty."""
    note = (
        "Means over seeds. Online, prediction and learning are one pass, and all of it is adaptation. Latency is "
        "wall time without waiting on retries, model time the sum over all calls."
    )
    label = table.label.replace("-", "-costs-", 1)
    page = Page(title=f"Costs: {table.title}", label=label, grids=(_cost_grid(table),), notes=(note,))
    lines = [
        {**table.about, **row.fields, **column.fields, "stage": stage, **amounts}
        for row, column, stage, amounts in _costs_of(table)
    ]
    return TableFiles(stem, page, csv_of(lines))


def _costs_of(table: Table) -> Iterator[tuple[Heading, Heading, str, Mapping[str, float | None]]]:
    """Yield row, column, stage and cost of each run of a table once, in the order of its rows."""
    for row, line in table.cells.items():
        planned_runs = set()
        for column, cell in line.items():
            if not cell.runs or cell.planned in planned_runs:
                continue
            planned_runs.add(cell.planned)
            for stage in ("adapt", "evaluate"):
                paths = {name: path.format(stage=stage) for name, path in _PATHS.items()}
                amounts = {name: mean_of([run.value(path) for run in cell.runs]) for name, path in paths.items()}
                calls = mean_of([sum(run.metrics["calls"][stage].values()) for run in cell.runs])
                tests_before = any(run.metrics["headline"]["before"] is not None for run in cell.runs)
                if amounts["rollouts"] or calls:
                    stage_label = f"{stage}{', before and after' * (tests_before and stage == 'evaluate')}"
                    yield table.rows[row], table.columns[column], stage_label, {"calls": calls, **amounts}
