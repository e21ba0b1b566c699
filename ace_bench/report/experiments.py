"""The paper's results as experiments (``paper/data/experiments``): which runs make them, and which number goes where.

An experiment is laid out like the paper's table: the overrides common to all cells, those of the column and those of
the row define a cell's run. Cells with equal overrides share one run, also between experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from ace_bench.core.errors import DataError
from ace_bench.report.experiment_files import Experiment
from ace_bench.report.overrides import read_setting
from ace_bench.report.paper.tables import DATA, Cell, Column, Paper
from ace_bench.report.yaml_models import read_yaml

TESTED = "tested"
"""Name of the file with the context that a run was tested with."""

_DOCUMENT = "seed_"
"""Start of the names of the founding documents' experiments."""
_RESULTS = ("table_", "figure_")
"""Start of the files of the paper's results."""

Refusal = Callable[[Sequence[str]], str]
"""Why the program refuses a run with these overrides, "" if it does not refuse it."""


def refuses_nothing(overrides: Sequence[str]) -> str:
    """Return that a run is not refused."""
    del overrides
    return ""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run by its overrides, without backbone and seed. ``needs`` are settings that name a file of another run."""

    overrides: tuple[str, ...]
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Need:
    """A setting that names a context of another run: ``mode.context`` or ``method.initial``."""

    setting: str
    run: PlannedRun
    context: str = TESTED


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """A measured cell: its run, its metric, and the paper's cell, if it has one."""

    ref: str
    run: PlannedRun
    metric: str
    paper: Cell | None


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """All experiments by name: ``1`` to ``21`` with ``4a`` and ``4b``, ``figure_1``, ``figure_2``, ``figure_5``,
    ``seed_002`` for a founding document, and ``field``.
    """

    by_name: Mapping[str, Experiment]
    paper: Paper

    @property
    def documents(self) -> tuple[str, ...]:
        """Names of the founding documents' experiments, which are not results of the paper."""
        return tuple(name for name in self.by_name if name.startswith(_DOCUMENT))

    @property
    def others(self) -> tuple[str, ...]:
        """Names of all experiments that are not results of the paper: those asked for by ``experiment=``."""
        return tuple(name for name, plan in self.by_name.items() if plan.model)

    @property
    def combined(self) -> tuple[str, ...]:
        """Names of the experiments that list methods."""
        return tuple(name for name, plan in self.by_name.items() if plan.combined)

    def narrowed(self, methods: Sequence[str], tasks: Sequence[str]) -> Experiments:
        """Return them with these methods and tasks in those that list methods; raises ``DataError``."""
        if not methods and not tasks:
            return self
        found = {name: self.by_name[name].narrowed(methods, tasks) for name in self.combined}
        return Experiments(by_name={**self.by_name, **found}, paper=self.paper)

    def model(self, name: str) -> str:
        """The backbone that an experiment is made with by default."""
        experiment = self._experiment(name)
        return experiment.model or self.paper.table(experiment.paper).model

    def cells(self, name: str) -> Iterator[PlannedCell]:
        """All measured cells of an experiment, line by line; raises ``DataError`` for an unknown one."""
        experiment = self._experiment(name)
        for row, line in experiment.rows.items():
            for column, place in experiment.columns.items():
                ours = line.ours or place.ours is not None
                paper = None if ours else self.paper.cell(f"{experiment.paper}/{row}/{column}")
                if paper is None or paper.value is not None:
                    yield PlannedCell(
                        ref=f"{name}/{row}/{column}",
                        run=self.run(name, row, column),
                        metric=self.metric(name, row, column),
                        paper=paper,
                    )

    def columns(self, name: str) -> Mapping[str, Column]:
        """The columns of a table: the paper's, then ours."""
        experiment = self._experiment(name)
        ours = {column: plan.ours for column, plan in experiment.columns.items() if plan.ours is not None}
        return {**self.paper.table(experiment.paper).columns, **ours}

    def metric(self, name: str, row: str, column: str) -> str:
        """The metric of a cell."""
        experiment = self._experiment(name)
        line = experiment.rows[row]
        counts = "" if line.ours else self.paper.table(experiment.paper).rows[row].counts
        return experiment.columns[column].metric.format(who=line.who, counts=counts or "calls")

    def runs(self, name: str) -> tuple[PlannedRun, ...]:
        """The runs of an experiment, each once and after those it needs."""
        found: dict[PlannedRun, None] = {}

        def add(run: PlannedRun) -> None:
            for need in run.needs:
                add(need.run)
            found.setdefault(run)

        for cell in self.cells(name):
            add(cell.run)
        return tuple(found)

    def run(self, name: str, row: str, column: str) -> PlannedRun:
        """The run behind a cell."""
        experiment = self._experiment(name)
        if row not in experiment.rows or column not in experiment.columns:
            raise DataError(f"experiment {name} has no measured cell {row}/{column}")
        line, place = experiment.rows[row], experiment.columns[column]
        overrides = _for_method([*experiment.common, *place.overrides, *line.overrides])
        if place.evaluates and (line.adapts == "offline" or line.context):
            adapted = self.run(name, row, place.evaluates)
            kept = [override for override in overrides if not override.startswith("mode")]
            need = Need(setting="mode.context", run=adapted, context=line.context or TESTED)
            return PlannedRun(overrides=_ordered([*kept, "mode=evaluate"]), needs=(need,))
        needs: tuple[Need, ...] = ()
        if line.starts_from:
            other, _, from_row = line.starts_from.partition("/")
            needs = (Need(setting="method.initial", run=self.run(other, from_row, place.evaluates or column)),)
        return PlannedRun(overrides=_ordered([*overrides, f"mode={line.adapts or 'offline'}"]), needs=needs)

    def _experiment(self, name: str) -> Experiment:
        if name not in self.by_name:
            raise DataError(f"there is no experiment {name}; there are {', '.join(self.by_name)}")
        return self.by_name[name]


def load_experiments(paper: Paper, folder: Traversable | None = None) -> Experiments:
    """Read all experiments, by default those of the package; raises ``DataError`` that names file and fix."""
    folder = folder or DATA.joinpath("experiments")
    by_name = {}
    for file in sorted(folder.iterdir(), key=lambda file: (not file.name.startswith(_RESULTS), file.name)):
        if file.name.endswith(".yaml"):
            experiment: Experiment = read_yaml(file, Experiment).with_rows()
            by_name[_name(file.name)] = experiment
            _check(experiment, paper, str(file))
    experiments = Experiments(by_name=by_name, paper=paper)
    for name in by_name:
        experiments.runs(name)  # raises for a broken reference between experiments
    return experiments


def _name(file: str) -> str:
    stem = file.removesuffix(".yaml")
    if not stem.startswith(_RESULTS):
        return stem
    kind, _, number = stem.partition("_")
    number = number.lstrip("0")
    return number if kind == "table" else f"{kind}_{number}"


def _check(experiment: Experiment, paper: Paper, where: str) -> None:
    if bool(experiment.model) == bool(experiment.paper or experiment.bars):
        raise DataError(f"{where}: give the paper's table, or without one a model: the backbone by default")
    if experiment.measure and experiment.rows:
        raise DataError(f"{where}: give rows and columns, or the function of a measurement, not both")
    for row, line in experiment.rows.items():
        if line.ours != bool(line.label):
            raise DataError(f"{where}: row {row} needs both ours and label, or neither (then it has the paper's label)")
        for column, place in experiment.columns.items():
            if not line.ours and place.ours is None:
                paper.cell(f"{experiment.paper}/{row}/{column}")
    if experiment.against and (experiment.paper or experiment.against not in experiment.rows):
        raise DataError(f"{where}: against={experiment.against} must be a row, and the paper's tables name their own")
    for place in experiment.columns.values():
        if place.evaluates and place.evaluates not in experiment.columns:
            raise DataError(f"{where}: evaluates names the unknown column {place.evaluates}")
    for bars in experiment.bars.values():
        for ref in bars.values():
            paper.cell(ref)


def _for_method(overrides: Sequence[str]) -> list[str]:
    """Leave out the settings for other methods than that of the row: ``gepa:sampling.proposer.max_tokens=16384``."""
    method = next((override.removeprefix("method=") for override in overrides if override.startswith("method=")), "")
    return [setting.override for setting in map(read_setting, overrides) if setting.only in ("", method)]


def _ordered(overrides: list[str]) -> tuple[str, ...]:
    """Sort choices of groups before settings, each by name, so that equal runs have equal overrides."""
    return tuple(sorted(overrides, key=lambda override: ("." in override.partition("=")[0], override)))
