"""One table of the paper or another experiment as data: the settings of its runs, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Literal

from msgspec.structs import replace

from ace_bench.core.errors import DataError
from ace_bench.report.paper.measures import check_metric, check_unit
from ace_bench.report.paper.rows import Column, Combinations, Row, YamlModel

CLAIM = "claim"
"""Takes the place of the table in a reference to a number that only the text states."""

DATA = files(__package__).joinpath("data")


class Cell(YamlModel, frozen=True, kw_only=True):
    """One number with its reference (``table/row/column``). ``value`` is ``None`` if the cell is empty."""

    ref: str
    value: float | None
    change: float | None = None


class Experiment(YamlModel, frozen=True, kw_only=True):
    """One result: a table with the runs behind its cells, and the paper's numbers where it has a ``section``.

    ``model`` is the paper's, or by default our experiment's. ``against`` is the row that the others are
    compared with. ``bars`` refer to cells of other results.

    An entry ``seed_<number>.yaml`` measures what one of the founding documents beside the paper claims, as rows and
    columns, or by the function that returns its table: ``measure: package.module:function`` (``core.measurement``),
    which gets the settings of the groups in ``takes``. Any other file without a ``section`` is an experiment that is
    asked for by its name. ``combined`` adds rows. ``not_reproducible`` maps rows without runs to the reason.
    """

    title: str
    id: str = ""
    section: str = ""
    model: str = ""
    measure: str = ""
    takes: tuple[str, ...] = ("backbone",)
    notes: str = ""
    layout: Literal["table", "bars", "curve"] = "table"
    common: tuple[str, ...] = ()
    columns: Mapping[str, Column] = {}
    rows: Mapping[str, Row] = {}
    combined: Combinations | None = None
    against: str = ""
    bars: Mapping[str, Mapping[str, str]] = {}
    not_reproducible: Mapping[str, str] = {}

    @property
    def paper(self) -> str:
        """Its name among the paper's tables, "" for other experiments."""
        return self.id if self.section else ""

    @property
    def printed(self) -> list[str]:
        """The columns that the paper has."""
        return [name for name, column in self.columns.items() if not column.ours]

    def cell(self, row: str, column: str) -> Cell:
        """Return one of the paper's cells. Raises ``DataError`` if it does not exist."""
        if row not in self.rows or column not in self.printed or self.rows[row].ours:
            printed_rows = (name for name, line in self.rows.items() if not line.ours)
            raise DataError(f"table {self.id} has no cell {row}/{column}; rows: {', '.join(printed_rows)}; columns: "
                            f"{', '.join(self.printed)}")  # fmt: skip
        line, index = self.rows[row], self.printed.index(column)
        change = line.changes[index] if line.changes else None
        return Cell(ref=f"{self.id}/{row}/{column}", value=line.values[index], change=change)

    @property
    def with_combinations(self) -> Experiment:
        """It with the rows of its combinations, if it lists methods."""
        if self.combined is None:
            return self
        return replace(self, rows=self.combined.rows([name for name, spec in self.columns.items() if spec.agents]))

    def narrowed(self, chosen: Mapping[str, Sequence[str]]) -> Experiment:
        """Return one that lists methods with the columns of the chosen ``tasks``, and its combinations narrowed."""
        if self.combined is None:
            return self
        tasks = chosen.get("tasks", ())
        columns = {name: column for name, column in self.columns.items() if name in tasks or not tasks}
        return replace(self, columns=columns, combined=self.combined.narrowed(chosen)).with_combinations


class Claim(YamlModel, frozen=True, kw_only=True):
    """A number that only the text states; ``data/claims.yaml`` says how it is computed from cells."""

    section: str
    value: float
    unit: str
    mean: tuple[str, ...] = ()
    gain: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    relative_to: str = ""


def check_experiment(result: Experiment, where: str) -> None:
    """Raise ``DataError`` for numbers or names that do not fit each other. ``where`` is the file."""
    if not (result.model or result.section or result.bars):
        raise DataError(f"{where}: give the paper's section, or a model: the backbone by default")
    if result.measure and result.rows:
        raise DataError(f"{where}: give rows and columns, or the function of a measurement, not both")
    for name, row in result.rows.items():
        for kind in ("values", "changes"):
            count = len(getattr(row, kind))
            if count not in (0, len(result.printed)):
                raise DataError(f"{where}: row {name} has {count} {kind} for {len(result.printed)} columns")
        _check_known(row.sum_of, result.rows, f"{where}: row {name}")
        _check_known(row.sum_columns, result.columns, f"{where}: row {name}")
    if result.against:
        _check_known((result.against,), result.rows, f"{where}: against")
    for name, column in result.columns.items():
        check_unit(column.unit, f"{where}: column {name}")
        check_metric(column.metric, f"{where}: column {name}")
        _check_known((*column.mean_of, *filter(None, [column.evaluates])), result.columns, f"{where}: column {name}")
        if column.weights and len(column.weights) != len(column.mean_of):
            raise DataError(f"{where}: column {name} has {len(column.weights)} weights for {len(column.mean_of)} parts")


def _check_known(names: Iterable[str], allowed: Mapping[str, object], where: str) -> None:
    for name in names:
        if name not in allowed:
            raise DataError(f"{where} names {name!r}, which is not one of {', '.join(allowed)}")
