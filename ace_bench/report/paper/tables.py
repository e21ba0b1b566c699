"""The paper's tables as frozen values, read from YAML files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from ace_bench.core.errors import DataError
from ace_bench.report.yaml_models import YamlModel, read_yaml

CLAIM = "claim"
"""Takes the place of the table in a reference to a number that only the text states."""

DATA = files(__package__).joinpath("data")

_WHOLE = ("count", "tokens", "seconds")


class Column(YamlModel, frozen=True, kw_only=True):
    """What a column measures, or how it is computed from others: as their (weighted) mean, or one ``per`` another.

    ``label`` is its header where the name alone would mislead.
    The columns of ``per`` are in the row named by ``same_as``: table 13 divides the sums of table 12.
    """

    unit: str
    label: str = ""
    task: str = ""
    split: str = ""
    metric: str = ""
    better: Literal["higher", "lower"] = "higher"
    mean_of: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    per: tuple[str, str] | None = None

    @property
    def digits(self) -> int:
        """Decimals that the paper prints."""
        return 0 if self.unit in _WHOLE else 1

    @property
    def derived(self) -> bool:
        """Whether it is computed from other columns."""
        return bool(self.mean_of or self.per)


class Row(YamlModel, frozen=True, kw_only=True):
    """One line: ``values`` and ``changes`` (against the table's reference row) in the order of the columns.

    ``gt`` is the paper's "GT labels" mark, ``None`` where the table has none. ``same_as`` names the row, here or in
    another table, that it repeats; ``sum_of`` the rows it adds up, in ``sum_columns`` or in all. ``counts`` is what the
    row counts where the paper writes "rollouts" for two things (tables 12 to 15): rollouts, or calls of a model.
    """

    label: str
    values: tuple[float | None, ...]
    changes: tuple[float, ...] = ()
    stage: Literal["offline", "online"] | None = None
    gt: bool | None = None
    settings: Mapping[str, str | int | float] = {}
    same_as: str = ""
    sum_of: tuple[str, ...] = ()
    sum_columns: tuple[str, ...] = ()
    counts: Literal["", "calls", "rollouts"] = ""


class Cell(YamlModel, frozen=True, kw_only=True):
    """One number with its reference (``table/row/column``); ``value`` is ``None`` if the cell is empty."""

    ref: str
    value: float | None
    change: float | None
    unit: str
    digits: int


class PaperTable(YamlModel, frozen=True, kw_only=True):
    """A table, or the numbers of a figure; changes of scores are in points, all others in percent."""

    id: str
    title: str
    section: str
    columns: Mapping[str, Column]
    rows: Mapping[str, Row]
    model: str = ""
    against: str = ""

    def cell(self, row: str, column: str) -> Cell:
        """Return one cell; raises ``DataError`` if it does not exist."""
        if row not in self.rows or column not in self.columns:
            raise DataError(f"table {self.id} has no cell {row}/{column}; rows: {_listed(self.rows)}; columns: "
                            f"{_listed(self.columns)}")  # fmt: skip
        line, place = self.rows[row], list(self.columns).index(column)
        return Cell(
            ref=f"{self.id}/{row}/{column}",
            value=line.values[place],
            change=line.changes[place] if line.changes else None,
            unit=self.columns[column].unit,
            digits=self.columns[column].digits,
        )

    def cells(self) -> Iterator[Cell]:
        """All cells that hold a number, line by line."""
        for row in self.rows:
            for column in self.columns:
                cell = self.cell(row, column)
                if cell.value is not None:
                    yield cell


NOT_IN_PAPER = PaperTable(id="", title="", section="", columns={}, rows={})
"""What stands in the paper's place for experiments of other documents."""


class Claim(YamlModel, frozen=True, kw_only=True):
    """A number that only the text states; ``data/claims.yaml`` says how it is computed from cells."""

    section: str
    value: float
    unit: str
    mean: tuple[str, ...] = ()
    gain: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    relative_to: str = ""


class Contradiction(YamlModel, frozen=True, kw_only=True):
    """A printed number that differs from the value recomputed by its ``rule`` by more than rounding.

    ``rule`` is ``mean``, ``ratio``, ``sum``, ``repeated`` (the same result is in another table), ``change`` (against
    the reference row), ``text`` (a claim of the text), ``highest`` (the text says so) or ``unit`` (``printed`` compares
    rollouts with calls; nothing can be recomputed).
    """

    cell: str
    rule: str
    printed: float
    recomputed: float | None = None

    def __str__(self) -> str:
        """The sentence for a table's notes."""
        if self.rule == "unit":
            return f"{self.cell}: its change, {self.printed:+g}%, compares calls with rollouts"
        if self.rule == "highest":
            return f"{self.cell}: by its text {self.printed:g} is the highest, and there is {self.recomputed:g}"
        return (
            f"{self.cell}: it prints {self.printed:.10g}, its other numbers give {self.recomputed:.10g} ({self.rule})"
        )


class Paper(YamlModel, frozen=True, kw_only=True, dict=True):
    """All numbers of the paper, tables by id: ``1`` to ``21`` with ``4a`` and ``4b``, ``figure_2``, ``figure_5``."""

    tables: Mapping[str, PaperTable]
    claims: Mapping[str, Claim]

    def table(self, name: str) -> PaperTable:
        """Return a table, an empty one for ""; raises ``DataError`` for an unknown one."""
        if not name:
            return NOT_IN_PAPER
        if name not in self.tables:
            raise DataError(f"the paper has no table {name}; there are {_listed(self.tables)}")
        return self.tables[name]

    def cell(self, ref: str) -> Cell:
        """Return the cell ``table/row/column``, or the claim ``claim/name``; raises ``DataError``."""
        match ref.split("/"):
            case [str(table), row, column] if table != CLAIM:
                return self.table(table).cell(row, column)
            case [str(kind), name] if kind == CLAIM and name in self.claims:
                claim = self.claims[name]
                return Cell(ref=ref, value=claim.value, change=None, unit=claim.unit, digits=1)
        raise DataError(f"{ref} is not a number of the paper; write table/row/column or {CLAIM}/name")

    @cached_property
    def refs(self) -> frozenset[str]:
        """References of all numbers in tables and figures."""
        return frozenset(cell.ref for table in self.tables.values() for cell in table.cells())


def known_contradictions() -> list[Contradiction]:
    """Read the contradictions that tables mention in their notes (``data/contradictions.yaml``)."""
    found: list[Contradiction] = read_yaml(DATA.joinpath("contradictions.yaml"), list[Contradiction])
    return found


def load_paper(folder: Traversable | None = None) -> Paper:
    """Read all tables, by default those of the package; raises ``DataError`` that names the file."""
    folder = folder or DATA
    tables: dict[str, PaperTable] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.startswith(("table_", "figure_")):
            table = read_yaml(file, PaperTable)
            if table.id in tables:
                raise DataError(f"{file}: another file has the same table id {table.id}; give each table its own id")
            _check(table, str(file))
            tables[table.id] = table
    return Paper(tables=tables, claims=read_yaml(folder.joinpath("claims.yaml"), dict[str, Claim]))


def _check(table: PaperTable, where: str) -> None:
    for name, row in table.rows.items():
        for kind in ("values", "changes"):
            count = len(getattr(row, kind))
            if count != len(table.columns) and not (kind == "changes" and count == 0):
                raise DataError(f"{where}: row {name} has {count} {kind} for {len(table.columns)} columns")
        _known(row.sum_of, table.rows, f"{where}: row {name}")
        _known(row.sum_columns, table.columns, f"{where}: row {name}")
        if row.changes:
            _known((table.against,), table.rows, f"{where}: against")
    for name, column in table.columns.items():
        _known(column.mean_of, table.columns, f"{where}: column {name}")
        if column.weights and len(column.weights) != len(column.mean_of):
            raise DataError(f"{where}: column {name} has {len(column.weights)} weights for {len(column.mean_of)} parts")


def _known(names: Iterable[str], known: Mapping[str, object], where: str) -> None:
    for name in names:
        if name not in known:
            raise DataError(f"{where} names {name!r}, which is not one of {_listed(known)}")


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names)
