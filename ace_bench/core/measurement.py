"""A measurement that is not a set of runs: a named function of the product that returns a table.

A file of ``ace_bench/report/paper/data/experiments`` names it as ``measure: package.module:function``;
``ace-bench reproduce experiment=NAME`` calls it and writes its table beside the tables of the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Value = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class MeasurementRequest:
    """What the user asked for: the name of the backbone option, checked settings ``KEY=VALUE``, seeds.

    ``folder`` is the measurement's own, to keep what was paid for; it need not exist.
    """

    backbone: str
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A table: each row has one value per column, ``None`` for an unknown number.

    ``simulated`` marks numbers that say nothing about language models or other people's data.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    simulated: bool = False


Measure = Callable[[MeasurementRequest], Measurement]
