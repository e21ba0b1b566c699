"""The paper's tables, and tables of other experiments, from the runs of one set of conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from ace_bench.report.experiments import Experiments, Refusal, refuses_nothing
from ace_bench.report.paper.claims import known_contradictions
from ace_bench.report.paper.rows import Column, Row
from ace_bench.report.paper.tables import Experiment
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import MISSING_RUN, Measured, Place, derive, measure, setting_warning
from ace_bench.report.tables.formats import NO, YES
from ace_bench.report.tables.grids import SIMILAR, column_name
from ace_bench.report.tables.results_index import Selection
from ace_bench.report.tables.table import MISSING, NO_PAPER, Heading, PaperShown, Table, compared_with

_GT = "GT labels"
"""The paper's column of check marks."""
MOST_CUT = 0.1
"""The share of a role's replies in a stage that may be cut at the limit of their length. With more, the row is void."""


def paper_table(
    name: str,
    selection: Selection,
    refusal: Refusal = refuses_nothing,
    *,
    paper: PaperShown = NO_PAPER,
    looks: int = 1,
) -> Table:
    """Measure all cells of an experiment laid out as a table.

    In an experiment that lists methods, ``refusal`` says which cells without runs the program refuses. Tests are
    corrected for ``looks`` at the results while runs are added.
    """
    combined = selection.experiments.by_name[name].combined
    return _Builder(name, selection, refusal if combined else refuses_nothing, paper, looks).table()


def void_note(runs: Iterable[RunSummary]) -> str:
    """Return why a row is void, such as ``void: 34% of the curator's replies were cut``, or "" if it is not.

    Runs with many replies cut at the limit of their length show the limit, not the method.
    """
    shares = {
        (paid and cut / paid, role)
        for run in runs
        for stage, roles in run.metrics.get("cut_replies", {}).items()
        for role, cut in roles.items()
        for paid in (run.metrics["calls"][stage].get(role, 0),)
    }
    share, role = max(shares, default=(0.0, ""))
    return f"void: {share:.0%} of the {role}'s replies were cut" if share > MOST_CUT else ""


@dataclass(frozen=True)
class _Builder:
    name: str
    selection: Selection
    refusal: Refusal
    paper: PaperShown
    looks: int

    @property
    def experiments(self) -> Experiments:
        return self.selection.experiments

    @cached_property
    def experiment(self) -> Experiment:
        return self.experiments.by_name[self.name]

    def table(self) -> Table:
        variant = self.selection.variant
        lines = self.experiment.rows
        base = self.experiment.against
        measured = {row: self._row(row) for row in self._begun() or lines}
        bases = {row: line.against for row, line in lines.items()} if self.experiment.combined else {}
        cells = compared_with(measured, base, own_bases=bases, looks=self.looks)
        rows = {row: self._heading(row, line) for row, line in cells.items()}
        specs = self.experiment.columns
        columns = {column: _column_heading(column, specs[column]) for column in next(iter(cells.values()))}
        measured_cells = [cell for line in cells.values() for cell in line.values()]
        warning = setting_warning(measured_cells) if variant.comparable else ""
        where = f"table {self.name} of the paper" if self.experiment.paper else self.name
        table = Table(
            title=f"{self.experiment.title} ({where}): runs with {variant.label}{warning}",
            label=f"{self.name}-{variant.slug}",
            about={"table": self.name, **variant.about},
            names=(*("method", "adaptation"), *["scaffold"] * bool(self.experiment.combined), "labels"),
            rows=rows,
            columns=columns,
            cells=cells,
            printed_names=()
            if self.experiment.combined
            else ("Method", *(name.replace("_", " ").capitalize() for name in self._varied), *[_GT] * self._marked),
            base=base if base in cells else "",
            bases=bases,
            base_title="base of the same scaffold" if bases else lines[base].label if base in cells else "",
            paper=self.paper,
            looks=self.looks,
            intro=(self.experiment.notes,) if self.experiment.notes else (),
        )
        return replace(table, notes=tuple(self._notes(table)))

    def _begun(self) -> list[str]:
        """Return the rows that have runs, in an experiment that lists methods: hundreds are possible."""
        if not self.experiment.combined:
            return []
        cells = self.experiments.cells(self.name)
        return list(
            dict.fromkeys(
                row for row, column in cells if self.selection.find(self.experiments.run(self.name, row, column))
            )
        )

    def _row(self, row: str) -> dict[str, Measured]:
        """Return the cells of a row in the paper's order. Derived columns are computed from measured ones."""
        columns = {column: (spec, self._place(row, column)) for column, spec in self.experiment.columns.items()}
        line = {column: self._measure(place, self.name) for column, (spec, place) in columns.items() if spec.metric}
        for column, (spec, place) in columns.items():
            if spec.derived:
                line[column] = self._derive_cell(place, spec, line)
        return {column: line[column] for column in columns if column in line}

    def _place(self, row: str, column: str) -> Place:
        spec = self.experiment.columns[column]
        printed = self.experiment.section and not self.experiment.rows[row].ours and not spec.ours
        paper = self.experiment.cell(row, column) if printed else None
        return Place(row=row, column=column, unit=spec.unit, paper=paper, within=spec.within)

    def _measure(self, place: Place, name: str, row: str = "", column: str = "") -> Measured:
        """Measure a cell of this experiment, or ``row`` and ``column`` of another one that a ratio is computed from."""
        key = (name, row or place.row, column or place.column)
        planned_row, spec = self.experiment.rows[place.row], self.experiment.columns[place.column]
        if reason := planned_row.left_out(place.column, spec):
            return Measured(place=place, state="left out", refused=reason)
        planned = self.experiments.run(*key)
        cell = self.selection.measure(place, planned, self.experiments.metric(*key))
        if not cell.runs and (reason := self.refusal(self.selection.overrides(planned))):
            return replace(cell, state="left out", refused=reason)
        if cell.state == MISSING_RUN and not self.experiment.combined:
            similar = self.selection.similar(planned)
            metric = self.experiments.metric(*key)
            cell = measure(place, planned, metric, similar.runs) if similar.runs else cell
            cell = replace(cell, differs=similar.differs, elsewhere=similar.refused)
        if not self.experiment.section:
            return cell
        return replace(cell, deviations=self.selection.deviations(planned, self.experiment.model))

    def _derive_cell(self, place: Place, spec: Column, line: Mapping[str, Measured]) -> Measured:
        if spec.per is None:
            weights = spec.weights or (1.0,) * len(spec.mean_of)
            return derive(place, [line[part] for part in spec.mean_of], lambda values: fmean(values, weights))
        name, _, row = self.experiment.rows[place.row].same_as.partition("/")
        parts = [self._measure(place, name, row, part) for part in spec.per]
        return derive(place, parts, lambda values: values[0] / values[1] if values[1] else None)

    def _heading(self, row: str, cells: Mapping[str, Measured]) -> Heading:
        """Describe a row. The settings distinguish rows with the same name in the paper."""
        plan = self.experiment.rows[row]
        settings = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in plan.settings.items())
        runs = [run for cell in cells.values() for run in cell.runs]
        void = void_note(runs)
        suffix = f", in {plan.counts}" if plan.counts else ""
        suffix += self._answered_by(plan.overrides, runs) + (f" ({void})" if void else "")
        label = (f"{plan.label} ({settings})" if settings else plan.label) + suffix
        # Labels only matter for adaptation.
        stage, labels = plan.adapts or "", self._labels(plan) if plan.adapts else ""
        fields = {"row": row, "method": label, "adaptation": stage, "labels": labels}
        if not self.experiment.combined:
            return self._paper_row(plan, (label, stage or "-", labels or "-"), fields, f"{plan.label}{suffix}")
        fields |= {"scaffold": plan.scaffold, "passes": plan.passes, "retries": "retries" * plan.retries}
        return Heading(texts=(label, plan.passes or "-", plan.scaffold, labels or "-"), fields=fields)

    def _labels(self, plan: Row) -> str:
        overrides = dict(override.split("=", 1) for override in (*self.experiment.common, *plan.overrides))
        return overrides.get("labels", "gold")

    @cached_property
    def _varied(self) -> tuple[str, ...]:
        """The settings that the table varies."""
        return tuple(dict.fromkeys(key for row in self.experiment.rows.values() for key in row.settings))

    @cached_property
    def _marked(self) -> bool:
        """Whether a column says which rows see reference answers."""
        rows = self.experiment.rows.values()
        return any(row.gt is not None for row in rows) or len({self._labels(row) for row in rows if row.adapts}) > 1

    def _paper_row(self, plan: Row, texts: tuple[str, ...], fields: Mapping[str, str], label: str) -> Heading:
        """Describe a row with a column for each setting that varies, in the group of its kind of adaptation."""
        settings = [plan.settings.get(name, MISSING) for name in self._varied]
        printed = [label, *(f"{value:,}" if isinstance(value, int) else str(value) for value in settings)]
        if self._marked:
            printed.append((YES if self._labels(plan) == "gold" else NO) if plan.adapts else "")
        scores = any(column.unit == "percent" for column in self.experiment.columns.values())
        kind = f"{plan.adapts.title()} adaptation" if plan.adapts else f"{self.selection.model} as base model"
        above = kind if scores else ""
        return Heading(texts=texts, fields=fields, printed=tuple(printed), above=above, part=bool(plan.who))

    def _answered_by(self, overrides: Iterable[str], runs: list[RunSummary]) -> str:
        """Name the stand-in of a role that the row gives a model of its own, or "" for runs of real models."""
        chosen = (override.partition("=")[0] for override in overrides if override.startswith("backbone@roles."))
        roles = [key.removeprefix("backbone@roles.") for key in chosen]
        if self.selection.variant.comparable or not roles or not runs:
            return ""
        names = {runs[0].metrics["roles"].get(role, runs[0].backbone) for role in roles}
        return f", answered by {' and '.join(sorted(names))}"

    def _notes(self, table: Table) -> Iterator[str]:
        if self.paper.numbers:
            yield from self._paper_notes(table)
        if self.experiment.combined:
            yield f"Not planned: {'; '.join(self.experiment.combined.notes())}."
            yield from _left_out(table)
        for row, reason in self.experiment.not_reproducible.items():
            yield f"{row} is not reproduced: {reason}."
        yield from _name_similar(table)

    def _paper_notes(self, table: Table) -> Iterator[str]:
        variant = self.selection.variant
        whose = self.experiment.model or "its own runs"
        yield f"The paper's numbers belong to {whose}, section {self.experiment.section}."
        if not variant.comparable:
            yield f"They are shown on request: runs that are {' and on '.join(variant.marks)} measure something else."
        cells = {cell.place.paper.ref for cell in table.measured if cell.place.paper}
        for contradiction in known_contradictions():
            if contradiction.cell in cells:
                yield f"The paper contradicts itself at {contradiction}."


def _column_heading(column: str, spec: Column) -> Heading:
    name = spec.label or column_name(column, spec.unit)
    above, printed = "", f"{name[:1].upper()}{name[1:]}"
    if spec.split.startswith("test_"):  # the split is a test set of AppWorld
        above, printed = spec.split.replace("_", "-").title(), f"{column_name(spec.metric)} ↑"
    elif spec.unit == "percent" and spec.metric:
        printed += " (Acc ↑)" if spec.metric == "accuracy" and column != "accuracy" else " ↑"
    return Heading(texts=(name,), fields={"column": column}, printed=(printed,), above=above)


def _left_out(table: Table) -> Iterator[str]:
    """Say which rows or cells the program refuses, and why."""
    refused: dict[str, dict[str, list[str]]] = {}
    for cell in table.measured:
        if cell.refused:
            column = table.columns[cell.place.column].title
            refused.setdefault(cell.refused, {}).setdefault(cell.place.row, []).append(column)
    for reason, rows in refused.items():
        names = [
            table.rows[row].title + f" ({', '.join(columns)})" * (len(columns) < len(table.columns))
            for row, columns in rows.items()
        ]
        yield f"Left out: {'; '.join(names)}: {reason}."


def _name_similar(table: Table) -> Iterator[str]:
    """Name the runs that stand in for planned ones, and those that exist but differ in what a cell is about."""
    stand_ins: dict[str, dict[str, None]] = {}
    not_shown: dict[str, dict[str, None]] = {}
    for cell in table.measured:
        name = table.name_of(cell)
        if cell.runs and cell.differs:
            stand_ins.setdefault(", ".join(cell.differs), {}).setdefault(name)
        for reason in cell.elsewhere:
            not_shown.setdefault(reason, {}).setdefault(name)
    for names_by_reason, text in (
        (stand_ins, f"{SIMILAR} not the planned runs, and compared only where both sides differ alike; they differ in"),
        (not_shown, "Runs of the same task, method and mode that are not shown, as they differ in"),
    ):
        if names_by_reason:
            reasons = (f"{reason} ({_join_few(names)})" for reason, names in names_by_reason.items())
            yield f"{text} {'; '.join(reasons)}."


def _join_few(names: Collection[str]) -> str:
    first, omitted = [*names][:4], len(names) - 4
    return ", ".join(first) + f" and {omitted} more" * (omitted > 0)
