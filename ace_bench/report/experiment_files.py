"""The files of experiments (``paper/data/experiments``): rows and columns with their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

from msgspec.structs import replace

from ace_bench.core.errors import DataError
from ace_bench.report.paper.tables import Column
from ace_bench.report.yaml_models import YamlModel


class ColumnPlan(YamlModel, frozen=True, kw_only=True):
    """A measured column: ``metric`` as ``RunSummary.value`` takes it, with ``{who}`` and ``{counts}`` for the row's.

    ``evaluates`` names the column whose run adapts: a context that was adapted there is only evaluated here. ``ours``
    describes a column that the paper does not have.
    """

    metric: str
    overrides: tuple[str, ...] = ()
    evaluates: str = ""
    ours: Column | None = None


class RowPlan(YamlModel, frozen=True, kw_only=True):
    """A line of the paper's table, or one of ``ours`` with a ``label`` of its own.

    ``starts_from`` is the ``experiment/row`` whose adapted context an adaptation starts from. ``context`` is
    the one that a column with ``evaluates`` evaluates: ``tested``, or that before or after the step that removed most
    tokens.
    """

    overrides: tuple[str, ...]
    adapts: Literal["offline", "online"] | None = None
    label: str = ""
    ours: bool = False
    who: str = ""
    starts_from: str = ""
    context: Literal["", "tested", "before_fall", "after_fall"] = ""


class Combinations(YamlModel, frozen=True, kw_only=True):
    """Rows for each method offline and online, with each kind of labels.

    The program itself refuses some of them, such as an optimiser online: those are left out with its reason.
    """

    methods: tuple[str, ...]
    adapts: tuple[Literal["offline", "online"], ...]
    labels: tuple[Literal["gold", "correctness", "none"], ...]

    def rows(self) -> dict[str, RowPlan]:
        """Return the rows by name, those of one method after each other."""
        return {
            f"{method}_{adapts}_{labels}": RowPlan(
                label=method, ours=True, adapts=adapts, overrides=(f"method={method}", f"labels={labels}")
            )
            for method, adapts, labels in product(self.methods, self.adapts, self.labels)
        }


class Experiment(YamlModel, frozen=True, kw_only=True):
    """One result. ``paper`` is the table or figure to compare with; ``bars`` refer to cells of other results.

    An entry ``seed_<number>.yaml`` measures what one of the founding documents beside the paper claims. It has a
    ``model`` (the backbone by default) in place of ``paper``, and one of two forms: rows and columns that are all
    ``ours``, or the name of a function that returns its table: ``measure: package.module:function``
    (``core.measurement``), which gets the settings of the groups in ``takes``.

    Any other file is an experiment of its own that is asked for by its name. Its rows and columns are ``ours``, too;
    ``combined`` adds rows, and ``against`` names the row that the others are compared with.

    ``not_reproducible`` maps rows that cannot be reproduced to the reason. Columns of the paper that are computed from
    others (means, ratios) are not repeated here.
    """

    title: str
    paper: str = ""
    model: str = ""
    measure: str = ""
    takes: tuple[str, ...] = ("backbone",)
    notes: str = ""
    layout: Literal["table", "bars", "curve"] = "table"
    common: tuple[str, ...] = ()
    columns: Mapping[str, ColumnPlan] = {}
    rows: Mapping[str, RowPlan] = {}
    combined: Combinations | None = None
    against: str = ""
    bars: Mapping[str, Mapping[str, str]] = {}
    not_reproducible: Mapping[str, str] = {}

    def with_rows(self) -> Experiment:
        """Add the combined rows."""
        return replace(self, rows={**self.rows, **self.combined.rows()}) if self.combined else self

    def narrowed(self, methods: Sequence[str], tasks: Sequence[str]) -> Experiment:
        """Return it with these methods in place of its own, and the columns of these tasks; empty means all.

        Raises ``DataError`` for a task without a column.
        """
        for task in tasks:
            if task not in self.columns:
                raise DataError(f"tasks={task}: there is no such task here; there are {', '.join(self.columns)}")
        own = self.combined
        if own is None:
            return self
        combined = replace(own, methods=tuple(methods) or own.methods)
        return replace(
            self,
            columns={name: plan for name, plan in self.columns.items() if name in tasks or not tasks},
            rows={name: row for name, row in self.rows.items() if name not in own.rows()},
            combined=combined,
        ).with_rows()
