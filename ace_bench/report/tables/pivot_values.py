"""What a table of a user's own runs shows, and the table itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ace_bench.report.differences import CHOICES, Settings, setting_text, value_text
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.pivot_names import METRIC, MISSING, SAMPLES, SCORE, metric_title


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a table shows: ``rows`` and ``columns`` are settings by path or last part, or ``metric``.

    ``metrics`` are ``score``, the headline metric of each task, or what ``RunSummary.value`` takes. With ``over_seeds``
    runs that differ in the seed alone share a cell. ``base`` names the base row by values (``base``,
    ``method=ace,threshold=0.5``); "" is the row of ``method=base``, if there is one.
    """

    rows: tuple[str, ...] = ("method",)
    columns: tuple[str, ...] = ("task",)
    metrics: tuple[str, ...] = (SCORE,)
    over_seeds: bool = True
    base: str = ""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A row or a column: the values of its settings, by path."""

    values: Settings

    def texts(self) -> tuple[str, ...]:
        """Return the values."""
        return tuple(map(value_text, self.values.values()))

    def title(self, names: Mapping[str, str]) -> str:
        """Return the settings in one line; ``names`` are their short names."""
        return " ".join(_part(path, value, names) for path, value in self.values.items() if value != MISSING)


@dataclass(frozen=True, kw_only=True)
class PivotTable:
    """Runs of one kind: all simulated or all real, on sample data or on real data.

    ``cells`` are by the names of rows and columns; ``names`` are short names of settings. ``base`` is the name of the
    base row, "" without one. ``added`` are settings in which runs of a row would have differed: they have columns of
    their own beside the row's; ``between`` are those in which only runs of different columns differ; ``split`` says
    whether columns were split because runs tested different samples.
    """

    title: str
    names: Mapping[str, str]
    rows: Mapping[str, Heading]
    columns: Mapping[str, Heading]
    cells: Mapping[str, Mapping[str, Measured]]
    base: str
    added: tuple[str, ...]
    between: tuple[str, ...]
    split: bool
    simulated: bool
    source: str

    @property
    def base_title(self) -> str:
        """The settings of the base row."""
        return self.rows[self.base].title(self.names) if self.base else ""

    @property
    def measured(self) -> list[Measured]:
        """All cells, line by line."""
        return [cell for line in self.cells.values() for cell in line.values()]


def _part(path: str, value: Any, names: Mapping[str, str]) -> str:
    if path == METRIC:
        return metric_title(str(value))
    if path == SAMPLES:
        return f"({value})"
    return column_name(str(value)) if path in CHOICES else setting_text(path, value, names.get(path, path))
