"""The paper's tables and other experiments as data: the settings of their runs, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from typing import Any, Literal

from msgspec.structs import replace

from ace_bench.core.errors import DataError
from ace_bench.report.yaml_models import YamlModel, read_yaml

CLAIM = "claim"
"""Takes the place of the table in a reference to a number that only the text states."""

DATA = files(__package__).joinpath("data")

_RESULTS = ("table_", "figure_")
"""Start of the files of the paper's results."""


class Column(YamlModel, frozen=True, kw_only=True):
    """A column that is measured (``metric``), or computed from others: their (weighted) mean, or one ``per`` another.

    ``metric`` is as ``RunSummary.value`` takes it, with ``{who}`` and ``{counts}`` for the row's. ``evaluates`` names
    the column whose run adapts: a context that was adapted there is only evaluated here. ``ours`` is not in the paper.
    ``label`` is its header where the name alone would mislead. The columns of ``per`` are in the row named by
    ``same_as``: table 13 divides the sums of table 12. With ``agents`` its runs take no scaffold.
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

    @property
    def derived(self) -> bool:
        """Whether it is computed from other columns."""
        return bool(self.mean_of or self.per)


class Row(YamlModel, frozen=True, kw_only=True):
    """One line of a table, with the settings of its runs, and the paper's numbers unless it is ours.

    ``values`` and ``changes`` (against the table's reference row) are in the order of the paper's columns. ``gt`` is
    the paper's "GT labels" mark, ``None`` where the table has none. ``same_as`` names the row, here or in another
    table, that it repeats; ``sum_of`` the rows it adds up, in ``sum_columns`` or in all. ``counts`` is what the row
    counts where the paper writes "rollouts" for two things (tables 12 to 15): rollouts, or calls of a model.

    ``starts_from`` is the ``experiment/row`` whose adapted context an adaptation starts from. ``context`` is
    the one that a column with ``evaluates`` evaluates: ``tested``, or that before or after the step that removed most
    tokens.

    Rows of ``Combinations`` name their base row (``against``), ``scaffold`` and ``passes``; ``without`` says why a
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
        """Whether the paper does not have it."""
        return not self.values


class Cell(YamlModel, frozen=True, kw_only=True):
    """One number with its reference (``table/row/column``); ``value`` is ``None`` if the cell is empty."""

    ref: str
    value: float | None
    change: float | None = None


class Method(YamlModel, frozen=True, kw_only=True):
    """Which combinations of a method make sense; empty means all, and ``why`` says why others are left out.

    ``own`` is the scaffold that its prompts have by themselves, "" where it is not known. One that ``retries`` answers
    test samples again.
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
        """Return the rows by name, those of one scaffold after each other; ``agents`` are columns without scaffolds."""
        found = {}
        for scaffold in self.scaffolds:
            found[f"{self.base}_{scaffold}"] = self._base_row(scaffold)
            for name, method in self.methods.items():
                if scaffold not in ("answer_alone", "json", method.own):
                    continue
                for passes, feedback in product(self.passes, self.feedback):
                    if passes in (method.passes or _EVERY) and feedback in (method.feedback or self.feedback):
                        key = f"{name}_{scaffold}_{passes}_{feedback}"
                        found[key] = self._row(name, scaffold, passes, feedback, agents)
        return found

    def _base_row(self, scaffold: str) -> Row:
        own = scaffold != "json"  # the answer alone is its own form
        return Row(
            label=self.base,
            overrides=(f"method={self.base}", *([] if own else [f"agent.scaffold={scaffold}"])),
            scaffold=scaffold,
            agents_only=scaffold == "own",
        )

    def _row(self, name: str, scaffold: str, passes: str, feedback: str, agents: Sequence[str]) -> Row:
        method = self.methods[name]
        own = scaffold == method.own
        settings = self.passes[passes]
        return Row(
            label=name,
            adapts="online" if "mode=online" in settings else "offline",
            overrides=(
                f"method={name}",
                f"labels={feedback}",
                *(setting for setting in settings if not setting.startswith("mode=")),
                *([] if own else [f"agent.scaffold={scaffold}"]),
            ),
            against=f"{self.base}_{scaffold}",
            scaffold=scaffold,
            passes=passes,
            retries=method.retries,
            without={}
            if own or (not method.own and scaffold == "json")
            else dict.fromkeys(agents, "agents act in one form, that of another row"),
        )

    def narrowed(self, chosen: Mapping[str, Sequence[str]]) -> Combinations:
        """Return it with these ``methods``, ``scaffolds``, ``feedback`` and ``passes``; raises ``DataError``."""
        axes: dict[str, Any] = {}
        for axis in ("scaffolds", "feedback", "passes"):
            own = getattr(self, axis)
            for name in chosen.get(axis, ()):
                if name not in own:
                    raise DataError(f"{axis}={name}: there is no such choice; there are {', '.join(own)}")
            wanted = [name for name in own if name in chosen.get(axis, own)]
            axes[axis] = {name: own[name] for name in wanted} if isinstance(own, Mapping) else tuple(wanted)
        names = chosen.get("methods") or self.methods
        return replace(self, **axes, methods={name: self.methods.get(name, Method()) for name in names})

    def notes(self) -> Iterator[str]:
        """Say which combinations of each method are not planned, and why."""
        for name, method in self.methods.items():
            parts = [
                f"{axis} {', '.join(own)} only"
                for axis, own, every in (
                    ("feedback", method.feedback, self.feedback),
                    ("passes", method.passes, _EVERY),
                )
                if own and set(own) != set(every)
            ]
            if parts:
                yield f"{name}: {'; '.join(parts)}" + f" ({method.why})" * bool(method.why)


_EVERY = ("stream", "once", "epochs")
"""The passes of a method that learns step by step."""


class Experiment(YamlModel, frozen=True, kw_only=True):
    """One result: a table with the runs behind its cells, and the paper's numbers where it has a ``section``.

    ``model`` is the paper's, or by default that of an experiment of ours; ``against`` is the row that the others are
    compared with. ``bars`` refer to cells of other results.

    An entry ``seed_<number>.yaml`` measures what one of the founding documents beside the paper claims, as rows and
    columns, or by the function that returns its table: ``measure: package.module:function`` (``core.measurement``),
    which gets the settings of the groups in ``takes``. Any other file without a ``section`` is an experiment that is
    asked for by its name; ``combined`` adds rows. ``not_reproducible`` maps rows without runs to the reason.
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
        """Return one of the paper's cells; raises ``DataError`` if it does not exist."""
        if row not in self.rows or column not in self.printed or self.rows[row].ours:
            theirs = (name for name, line in self.rows.items() if not line.ours)
            raise DataError(f"table {self.id} has no cell {row}/{column}; rows: {', '.join(theirs)}; columns: "
                            f"{', '.join(self.printed)}")  # fmt: skip
        line, place = self.rows[row], self.printed.index(column)
        change = line.changes[place] if line.changes else None
        return Cell(ref=f"{self.id}/{row}/{column}", value=line.values[place], change=change)

    @property
    def with_combinations(self) -> Experiment:
        """It with the rows of its combinations, if it lists methods."""
        if self.combined is None:
            return self
        return replace(self, rows=self.combined.rows([name for name, spec in self.columns.items() if spec.agents]))

    def narrowed(self, chosen: Mapping[str, Sequence[str]]) -> Experiment:
        """Return it with these ``methods`` in place of its own, and the columns of these ``tasks``; empty means all.

        Raises ``DataError`` for a task without a column.
        """
        tasks = chosen.get("tasks", ())
        for task in tasks:
            if task not in self.columns:
                raise DataError(f"tasks={task}: there is no such task here; there are {', '.join(self.columns)}")
        if self.combined is None:
            return self
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


class Paper(YamlModel, frozen=True, kw_only=True, dict=True):
    """All results by name: the paper's (``1`` to ``21`` with ``4a`` and ``4b``, ``figure_2``), and others.

    ``tables`` are those of the paper, ``claims`` the numbers that only its text states.
    """

    results: Mapping[str, Experiment]
    claims: Mapping[str, Claim]

    @cached_property
    def tables(self) -> Mapping[str, Experiment]:
        """The results that have numbers of the paper."""
        return {name: result for name, result in self.results.items() if result.section}

    def table(self, name: str) -> Experiment:
        """Return a table of the paper; raises ``DataError`` for an unknown one."""
        if name not in self.tables:
            raise DataError(f"the paper has no table {name}; there are {', '.join(self.tables)}")
        return self.tables[name]

    def cell(self, ref: str) -> Cell:
        """Return the cell ``table/row/column``, or the claim ``claim/name``; raises ``DataError``."""
        match ref.split("/"):
            case [str(table), row, column] if table != CLAIM:
                return self.table(table).cell(row, column)
            case [str(kind), name] if kind == CLAIM and name in self.claims:
                return Cell(ref=ref, value=self.claims[name].value)
        raise DataError(f"{ref} is not a number of the paper; write table/row/column or {CLAIM}/name")


def load_paper(folder: Traversable | None = None) -> Paper:
    """Read all results, by default those of the package; raises ``DataError`` that names the file."""
    folder = folder or DATA
    results: dict[str, Experiment] = {}
    files = folder.joinpath("experiments").iterdir()
    for file in sorted(files, key=lambda file: (not file.name.startswith(_RESULTS), file.name)):
        if file.name.endswith(".yaml"):
            result: Experiment = replace(read_yaml(file, Experiment), id=_name(file.name))
            result = result.with_combinations
            _check(result, str(file))
            results[result.id] = result
    return Paper(results=results, claims=read_yaml(folder.joinpath("claims.yaml"), dict[str, Claim]))


def _name(file: str) -> str:
    stem = file.removesuffix(".yaml")
    kind, _, number = stem.partition("_")
    if not stem.startswith(_RESULTS):
        return stem
    return number.lstrip("0") if kind == "table" else f"{kind}_{number.lstrip('0')}"


def _check(result: Experiment, where: str) -> None:
    if not (result.model or result.section or result.bars):
        raise DataError(f"{where}: give the paper's section, or a model: the backbone by default")
    if result.measure and result.rows:
        raise DataError(f"{where}: give rows and columns, or the function of a measurement, not both")
    for name, row in result.rows.items():
        for kind in ("values", "changes"):
            count = len(getattr(row, kind))
            if count not in (0, len(result.printed)):
                raise DataError(f"{where}: row {name} has {count} {kind} for {len(result.printed)} columns")
        _known(row.sum_of, result.rows, f"{where}: row {name}")
        _known(row.sum_columns, result.columns, f"{where}: row {name}")
    if result.against:
        _known((result.against,), result.rows, f"{where}: against")
    for name, column in result.columns.items():
        _known((*column.mean_of, *filter(None, [column.evaluates])), result.columns, f"{where}: column {name}")
        if column.weights and len(column.weights) != len(column.mean_of):
            raise DataError(f"{where}: column {name} has {len(column.weights)} weights for {len(column.mean_of)} parts")


def _known(names: Iterable[str], known: Mapping[str, object], where: str) -> None:
    for name in names:
        if name not in known:
            raise DataError(f"{where} names {name!r}, which is not one of {', '.join(known)}")
