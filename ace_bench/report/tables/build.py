"""A table of the paper, reproduced from the runs of one variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import msgspec

from ace_bench.report.experiment_files import Experiment, RowPlan
from ace_bench.report.experiments import Experiments, Refusal, refuses_nothing
from ace_bench.report.paper.tables import Column, PaperTable
from ace_bench.report.tables.cells import Change, Measured, Place, corrected, derive, setting_warning
from ace_bench.report.tables.cut_replies import void_note
from ace_bench.report.tables.variants import Selection


@dataclass(frozen=True, kw_only=True)
class Line:
    """Name, adaptation and labels of a row."""

    label: str
    stage: str
    labels: str


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """One table over one variant: ``cells`` by row, then column."""

    name: str
    experiment: Experiment
    paper: PaperTable
    columns: Mapping[str, Column]
    selection: Selection
    lines: Mapping[str, Line]
    cells: Mapping[str, Mapping[str, Measured]]

    @property
    def title(self) -> str:
        """Title with the conditions of the runs."""
        variant = self.selection.variant
        warning = setting_warning(self.measured) if variant.comparable else ""
        place = f"table {self.name} of the paper" if self.experiment.paper else self.name
        return f"{self.experiment.title} ({place}): runs with {variant.label}{warning}"

    @property
    def measured(self) -> list[Measured]:
        """All cells, line by line."""
        return [cell for line in self.cells.values() for cell in line.values()]

    @property
    def change(self) -> Change:
        """Whether changes against the base are in points or in percent."""
        return self.paper.change

    @property
    def empty(self) -> bool:
        """Whether none of its runs has finished."""
        return not any(cell.runs for cell in self.measured)


def build_table(
    name: str, experiments: Experiments, selection: Selection, refusal: Refusal = refuses_nothing
) -> ResultTable:
    """Measure all cells of an experiment laid out as a table.

    In an experiment that lists methods, ``refusal`` says which cells without runs the program refuses.
    """
    experiment = experiments.by_name[name]
    refusal = refusal if experiment.combined else refuses_nothing
    builder = _Builder(name=name, experiments=experiments, selection=selection, refusal=refusal)
    cells = {row: builder.row(row) for row in experiment.rows}
    base = cells.get(builder.paper.against)
    if base is not None:
        cells = corrected({row: line if line is base else builder.compared(line, base) for row, line in cells.items()})
    return ResultTable(
        name=name,
        experiment=experiment,
        paper=builder.paper,
        columns=builder.columns,
        selection=selection,
        lines={row: builder.line(row, line) for row, line in cells.items()},
        cells=cells,
    )


@dataclass(frozen=True, kw_only=True)
class _Builder:
    name: str
    experiments: Experiments
    selection: Selection
    refusal: Refusal

    @property
    def experiment(self) -> Experiment:
        return self.experiments.by_name[self.name]

    @property
    def paper(self) -> PaperTable:
        table = self.experiments.paper.table(self.experiment.paper)
        return msgspec.structs.replace(table, against=self.experiment.against) if self.experiment.against else table

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.experiments.columns(self.name)

    def row(self, row: str) -> dict[str, Measured]:
        """Return the cells of a row in the paper's order; derived columns are computed from measured ones."""
        columns = self.columns
        found = {
            column: self.measured(self.place(row, column), self.name, row, column) for column in self.experiment.columns
        }
        for column, spec in columns.items():
            if spec.derived:
                found[column] = self.derived(self.place(row, column), spec, found)
        return {column: found[column] for column in columns if column in found}

    def place(self, row: str, column: str) -> Place:
        ours = self.experiment.rows[row].ours or column not in self.paper.columns
        paper = None if ours else self.paper.cell(row, column)
        return Place(row=row, column=column, unit=self.columns[column].unit, paper=paper)

    def measured(self, place: Place, name: str, row: str, column: str) -> Measured:
        """Measure a cell of this experiment, or of another one that a ratio is computed from."""
        planned = self.experiments.run(name, row, column)
        cell = self.selection.measures.cell(place, planned, self.experiments.metric(name, row, column))
        if not cell.runs and (reason := self.refusal(self.selection.overrides(planned))):
            return replace(cell, state="left out", refused=reason)
        model = self.paper.model
        return replace(cell, deviations=self.selection.deviations(planned, model)) if model else cell

    def compared(self, line: Mapping[str, Measured], base: Mapping[str, Measured]) -> dict[str, Measured]:
        """Compare a row with the base row."""
        compared = self.selection.measures.compared
        return {column: compared(cell, base[column], self.paper.change) for column, cell in line.items()}

    def derived(self, place: Place, spec: Column, found: Mapping[str, Measured]) -> Measured:
        if spec.per is None:
            weights = spec.weights or (1.0,) * len(spec.mean_of)
            return derive(place, [found[part] for part in spec.mean_of], lambda values: fmean(values, weights))
        name, _, row = self.paper.rows[place.row].same_as.partition("/")
        parts = [self.measured(place, name, row, part) for part in spec.per]
        return derive(place, parts, lambda values: values[0] / values[1] if values[1] else None)

    def line(self, row: str, cells: Mapping[str, Measured]) -> Line:
        """Describe a row; the settings distinguish rows with the same name in the paper."""
        plan = self.experiment.rows[row]
        if plan.ours:
            label = plan.label
        else:
            printed = self.paper.rows[row]
            settings = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in printed.settings.items())
            counted = f", in {printed.counts}" if printed.counts else ""
            label = (f"{printed.label} ({settings})" if settings else printed.label) + counted
        overrides = dict(override.split("=", 1) for override in (*self.experiment.common, *plan.overrides))
        label += self._answered_by(plan, cells)
        void = void_note(run for cell in cells.values() for run in cell.runs)
        label += f" ({void})" if void else ""
        # Labels only matter for adaptation.
        labels = overrides.get("labels", "gold") if plan.adapts else ""
        return Line(label=label, stage=plan.adapts or "", labels=labels)

    def _answered_by(self, plan: RowPlan, cells: Mapping[str, Measured]) -> str:
        """Name the stand-in of a role that the row gives a model of its own; "" for runs of real models."""
        chosen = (override.partition("=")[0] for override in plan.overrides if override.startswith("backbone@roles."))
        roles = [key.removeprefix("backbone@roles.") for key in chosen]
        runs = [run for cell in cells.values() for run in cell.runs]
        if self.selection.variant.comparable or not roles or not runs:
            return ""
        names = {runs[0].metrics["roles"].get(role, runs[0].backbone) for role in roles}
        return f", answered by {' and '.join(sorted(names))}"
