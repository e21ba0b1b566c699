"""A table: rows by columns of measured cells, compared with a base row and with the paper's numbers.

``paper_tables`` makes the paper's tables and ``own_tables`` tables of a user's own runs; ``grids`` and ``formats``
print both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ace_bench.core.statistics import holm
from ace_bench.report.tables.cells import Measured, compared_to

MISSING = "-"
"""The state of a cell that no run belongs to, and the value of a setting that runs do not have."""

Cells = Mapping[str, Mapping[str, Measured]]
"""Cells by the names of row and column."""


@dataclass(frozen=True, kw_only=True)
class PaperShown:
    """Which numbers of the paper to show.

    Differences to the paper are shown for cells in its setting, and with ``differences`` for all.
    """

    numbers: bool
    differences: bool = False

    def compares(self, cell: Measured) -> bool:
        """Whether a cell is compared with the paper's."""
        return self.numbers and (self.differences or not cell.deviations)

    def difference(self, cell: Measured) -> float | None:
        """Our number minus the paper's, ``None`` if it is unknown or should not be shown."""
        return cell.difference if self.compares(cell) else None


NO_PAPER = PaperShown(numbers=False)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A row or a column: the ``texts`` that name it, and the ``fields`` that a line of CSV has for it.

    LaTeX prints ``printed`` in place of the texts, and ``above`` once over it and its neighbours (a group, a test set).
    A ``part`` of a cost has no bold numbers, and only the changes that the paper prints.
    """

    texts: tuple[str, ...]
    fields: Mapping[str, Any]
    printed: tuple[str, ...] = ()
    above: str = ""
    part: bool = False

    @property
    def title(self) -> str:
        """All texts in one line."""
        return " ".join(self.texts)

    @property
    def in_print(self) -> tuple[str, ...]:
        """The texts in LaTeX."""
        return self.printed or self.texts


@dataclass(frozen=True, kw_only=True)
class Continuing:
    """The ``commands`` that make the ``missing`` runs of a table, and go on with those that were ``begun``.

    ``older`` are other versions of this program that began some of them.
    """

    missing: int
    begun: int
    commands: tuple[str, ...]
    older: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say what the commands do."""
        states = [f"{self.begun} begun"] * bool(self.begun) + [f"{self.missing} missing"] * bool(self.missing)
        count = len(self.commands)
        which = f"These {count} commands complete them, in this order" if count > 1 else "This command completes them"
        text = f"Runs that have not finished: {', '.join(states)}. {which}, and no answered call is paid for again"
        if self.older:
            text += (
                f". ace-bench {', '.join(self.older)} began some: a command goes on with these only if data, prompts "
                "and settings are still the same, and begins them anew otherwise"
            )
        return text


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of runs of one kind.

    ``names`` are the headers of the texts that name a row, ``printed_names`` those in LaTeX. ``base`` is the row that
    the others are compared with, "" without one, and ``base_title`` its name in notes. ``about`` holds the fields that
    each line of CSV has. ``intro`` stands before the notes on statistics, ``notes`` after them. ``bases`` are the base
    rows of those rows that have their own. ``continuing`` makes the runs that are missing. ``looks`` is how often the
    results are looked at while runs are added. ``other_tests`` are tests without the base row that are corrected
    together with those against it.
    """

    title: str
    label: str
    about: Mapping[str, object]
    names: tuple[str, ...]
    rows: Mapping[str, Heading]
    columns: Mapping[str, Heading]
    cells: Cells
    printed_names: tuple[str, ...] = ()
    base: str = ""
    base_title: str = ""
    bases: Mapping[str, str] = field(default_factory=dict)
    paper: PaperShown = NO_PAPER
    intro: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    continuing: Continuing | None = None
    looks: int = 1
    other_tests: int = 0

    @property
    def family(self) -> int:
        """Number of tests that are corrected together."""
        return sum(cell.comparison is not None for cell in self.measured) + self.other_tests

    @property
    def measured(self) -> list[Measured]:
        """All cells, line by line."""
        return [cell for line in self.cells.values() for cell in line.values()]

    def base_of(self, row: str, column: str) -> Measured | None:
        """Return the base of a cell, ``None`` for one without, and for the base itself."""
        base = self.bases.get(row, self.base)
        return self.cells[base][column] if base in self.cells and base != row else None

    def name_of(self, cell: Measured) -> str:
        """Return the titles of a cell's row and column."""
        return f"{self.rows[cell.place.row].title} ({self.columns[cell.place.column].title})"

    @property
    def empty(self) -> bool:
        """Whether all its runs are unfinished."""
        return not any(cell.runs for cell in self.measured)


def compared_with(
    cells: Cells, base: str, own_bases: Mapping[str, str] = MappingProxyType({}), *, looks: int = 1
) -> Cells:
    """Compare all rows with the base row, or with ``own_bases`` ones.

    P-values are corrected over the table, and for ``looks`` at the results while runs are added.
    """
    bases = {row: own_bases.get(row, base) for row in cells}
    compared = {
        row: line
        if bases[row] not in cells or bases[row] == row
        else {column: compared_to(cell, cells[bases[row]][column], looks) for column, cell in line.items()}
        for row, line in cells.items()
    }
    # All comparisons of a table are one family.
    adjusted = iter(
        holm([cell.comparison.p for line in compared.values() for cell in line.values() if cell.comparison])
    )
    return {
        row: {name: replace(cell, p_holm=next(adjusted) if cell.comparison else None) for name, cell in line.items()}
        for row, line in compared.items()
    }
