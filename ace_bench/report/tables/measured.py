"""The table of a measurement, in the same files as the tables of runs."""

from __future__ import annotations

import re
from typing import NamedTuple

from ace_bench.core.measurement import Measurement, Value
from ace_bench.report.escaping import csv_of
from ace_bench.report.experiment_files import Experiment
from ace_bench.report.tables.grids import NOT_KNOWN, Grid, number
from ace_bench.report.tables.render import Page

_OTHER = re.compile(r"[^\w.-]+")
"""Characters that are replaced in file names."""


class TableFiles(NamedTuple):
    """A table: the name of its files without the ending, its text, and its CSV."""

    stem: str
    page: Page
    csv: str


def measured_table(name: str, experiment: Experiment, found: Measurement, backbone: tuple[str, ...]) -> TableFiles:
    """Lay out a measurement; ``backbone`` is the option's name, and the model's if the user named one."""
    slug = _OTHER.sub("_", "-".join((*backbone, *["simulated"] * found.simulated)))
    warning = " [simulated: not comparable with published numbers]" if found.simulated else ""
    rows = tuple(tuple(map(_word, row)) for row in found.rows)
    notes = [*([experiment.notes] if experiment.notes else []), *found.notes]
    page = Page(
        title=f"{experiment.title} ({name}): measured with {', '.join(backbone)}{warning}",
        label=f"{name}-{slug}",
        grids=(Grid(title="Results", header=found.columns, rows=rows),),
        notes=tuple(" ".join(note.split()) for note in notes),
        commands=(),
    )
    marks = {"table": name, "backbone": " ".join(backbone), "simulated": found.simulated}
    records = [{**marks, **dict(zip(found.columns, row, strict=True))} for row in found.rows]
    return TableFiles(f"table_{name}_{slug}", page, csv_of(records))


def _word(value: Value) -> str:
    if value is None:
        return NOT_KNOWN
    return value if isinstance(value, str) else number(value)
