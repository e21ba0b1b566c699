"""Columns and rows of a table of the paper or an experiment, and rows for each combination of some choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from itertools import product
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ace_bench.core.encoding import convert
from ace_bench.core.errors import DataError

_EVERY, _FORMS = ("stream", "once", "epochs"), ("answer_alone", "json")
"""The passes of a method that learns step by step, and the scaffolds of all methods."""


class YamlModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose fields are the keys of a file."""


def read_yaml(file: Traversable, kind: Any) -> Any:
    """Read a YAML file as a value of type ``kind``. Raises ``DataError`` that names the file and the error."""
    try:
        return convert(msgspec.yaml.decode(file.read_bytes()), kind)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error}; restore it") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is damaged: {error}; restore it") from error


class Column(YamlModel, frozen=True, kw_only=True):
    """A column that is measured (``metric``), or computed from others: their (weighted) mean, or one ``per`` another.

    ``metric`` is as ``RunSummary.value`` takes it, with ``{who}`` and ``{counts}`` for the row's. ``evaluates`` names
    the column whose run adapts: a context that was adapted there is only evaluated here. ``ours`` is not in the paper.
    ``label`` replaces the name in its header where the name would mislead. The columns of ``per`` are in the row named
    by ``same_as``: table 13 divides the sums of table 12. With ``agents`` its runs take no scaffold. ``within`` is the
    margin in points for a verdict that a cell is equivalent to the base row.
    """

    unit: str
    label: str = ""
    task: str = ""
    split: str = ""
    metric: str = ""
    overrides: tuple[str, ...] = ()
    evaluates: str = ""
    better: Literal["higher", "lower"] = "higher"
    mean_of: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    per: tuple[str, str] | None = None
    ours: bool = False
    agents: bool = False
    within: float | None = None

    @property
    def derived(self) -> bool:
        """Whether it is computed from other columns."""
        return bool(self.mean_of or self.per)


class Row(YamlModel, frozen=True, kw_only=True):
    """One line of a table, with the settings of its runs, and the paper's numbers unless it is ours.

    ``values`` and ``changes`` (against the table's reference row) are in the order of the paper's columns. ``gt`` is
    the paper's "GT labels" mark, ``None`` if the table has none. ``same_as`` names the row that it repeats, in this or
    another table. ``sum_of`` names the rows it adds up, in ``sum_columns`` or in all. ``counts`` is what the row counts
    where the paper writes "rollouts" for two things (tables 12 to 15): rollouts, or calls of a model.

    ``starts_from`` is the ``experiment/row`` whose adapted context an adaptation starts from. ``context`` is
    the one that a column with ``evaluates`` evaluates: ``tested``, or that before or after the step that removed most
    tokens.

    Rows of ``Combinations`` name their base row (``against``), ``scaffold`` and ``passes``. ``without`` says why a
    column has no run of theirs, and ``agents_only`` that only agents' columns have one.
    """

    label: str
    overrides: tuple[str, ...] = ()
    adapts: Literal["offline", "online"] | None = None
    values: tuple[float | None, ...] = ()
    changes: tuple[float, ...] = ()
    gt: bool | None = None
    settings: Mapping[str, str | int | float] = {}
    same_as: str = ""
    sum_of: tuple[str, ...] = ()
    sum_columns: tuple[str, ...] = ()
    counts: Literal["", "calls", "rollouts"] = ""
    who: str = ""
    starts_from: str = ""
    context: Literal["", "tested", "before_fall", "after_fall"] = ""
    against: str = ""
    scaffold: str = ""
    passes: str = ""
    retries: bool = False
    agents_only: bool = False
    without: Mapping[str, str] = {}

    def left_out(self, column: str, spec: Column) -> str:
        """Return why it has no run in a column, "" if it has one."""
        if self.agents_only and not spec.agents:
            return "without a scaffold base replies with the answer alone"
        return self.without.get(column, "")

    @property
    def ours(self) -> bool:
        """Whether the paper has no number for the row."""
        return not self.values


class Method(YamlModel, frozen=True, kw_only=True):
    """Which combinations of a method make sense. Empty means all, and ``why`` says why others are left out.

    ``own`` is the scaffold that its prompts have by themselves, "" if it is not known. One that ``retries`` answers
    test samples again, so it is not compared with the base.
    """

    own: str = ""
    feedback: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    retries: bool = False
    why: str = ""


class Combinations(YamlModel, frozen=True, kw_only=True):
    """Rows for each method by scaffold, passes and feedback, and a row of ``base`` for each scaffold.

    The program itself refuses some of them, such as worked examples without reference answers: those are left out with
    its reason.
    """

    base: str
    scaffolds: tuple[str, ...]
    feedback: tuple[str, ...]
    passes: Mapping[str, tuple[str, ...]]
    methods: Mapping[str, Method]

    def rows(self, agents: Sequence[str]) -> dict[str, Row]:
        """Return the rows by name, grouped by scaffold. ``agents`` are columns without scaffolds."""
        rows = {}
        for scaffold in self.scaffolds:
            as_own_form = scaffold != "json"  # the answer alone is its own form
            rows[f"{self.base}_{scaffold}"] = Row(
                label=self.base,
                overrides=(f"method={self.base}", *([] if as_own_form else [f"agent.scaffold={scaffold}"])),
                scaffold=scaffold,
                agents_only=scaffold == "own",
            )
            methods = {name: method for name, method in self.methods.items() if scaffold in (*_FORMS, method.own)}
            for (name, method), passes, feedback in product(methods.items(), self.passes, self.feedback):
                if passes in (method.passes or _EVERY) and feedback in (method.feedback or self.feedback):
                    key = f"{name}_{scaffold}_{passes}_{feedback}"
                    rows[key] = self._row(name, scaffold, passes, feedback, agents)
        return rows

    def _row(self, name: str, scaffold: str, passes: str, feedback: str, agents: Sequence[str]) -> Row:
        method = self.methods[name]
        in_own_scaffold = scaffold == method.own
        settings = self.passes[passes]
        return Row(
            label=name,
            adapts="online" if "mode=online" in settings else "offline",
            overrides=(
                f"method={name}",
                f"labels={feedback}",
                *(setting for setting in settings if not setting.startswith("mode=")),
                *([] if in_own_scaffold else [f"agent.scaffold={scaffold}"]),
            ),
            against="" if method.retries else f"{self.base}_{scaffold}",
            scaffold=scaffold,
            passes=passes,
            retries=method.retries,
            without={}
            if in_own_scaffold or (not method.own and scaffold == "json")
            else dict.fromkeys(agents, "agents act in one form, as in another row"),
        )

    def narrowed(self, chosen: Mapping[str, Sequence[str]]) -> Combinations:
        """Return it with these ``methods``, ``scaffolds``, ``feedback`` and ``passes``. It always has the base's rows.

        Raises ``DataError`` for an unknown name.
        """
        axes: dict[str, Any] = {}
        for axis in ("scaffolds", "feedback", "passes"):
            choices = getattr(self, axis)
            for name in chosen.get(axis, ()):
                if name not in choices:
                    raise DataError(f"{axis}={name}: there is no such choice; there are {', '.join(choices)}")
            wanted = [name for name in choices if name in chosen.get(axis, choices)]
            axes[axis] = {name: choices[name] for name in wanted} if isinstance(choices, Mapping) else tuple(wanted)
        names = chosen.get("methods") or self.methods
        methods = {name: self.methods.get(name, Method()) for name in names if name != self.base}
        return replace(self, **axes, methods=methods)

    def notes(self) -> Iterator[str]:
        """Say which combinations of each method are not planned, and why."""
        for name, method in self.methods.items():
            axes = (("feedback", method.feedback, self.feedback), ("passes", method.passes, _EVERY))
            if parts := [
                f"{axis} {', '.join(allowed)} only"
                for axis, allowed, values in axes
                if {*allowed} not in (set(), {*values})
            ]:
                yield f"{name}: {'; '.join(parts)}" + f" ({method.why})" * bool(method.why)
