"""The paper's results as experiments (``paper/data/experiments``): which runs make them, and which number goes where.

An experiment is laid out like the paper's table: the overrides common to all cells, of the column and of
the row define a cell's run. Cells with equal overrides share one run, also between experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import chain

from msgspec.structs import replace as changed

from ace_bench.core.errors import DataError
from ace_bench.report.paper.measures import check_unit
from ace_bench.report.paper.rows import read_yaml
from ace_bench.report.paper.tables import CLAIM, DATA, Cell, Claim, Experiment, check_experiment
from ace_bench.report.planned import TESTED, Need, PlannedRun, read_setting

_RESULTS, _DOCUMENT = ("table_", "figure_"), "seed_"
"""Start of the names of files about the paper's results, and about the founding documents beside it."""
Refusal = Callable[[Sequence[str]], str]
"""The reason why the program refuses a run with these overrides, or ""."""


Draws = Callable[[Sequence[str]], bool]
"""Whether a run with these overrides draws something by its seed."""


def draws_always(overrides: Sequence[str]) -> bool:
    """Return true: every run may draw something by its seed."""
    del overrides
    return True


def refuses_nothing(overrides: Sequence[str]) -> str:
    """Return "": no run is refused."""
    del overrides
    return ""


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """All experiments by name: the paper's tables and figures, ``seed_002`` for a founding document, and ``field``.

    The paper's are ``1`` to ``21`` with ``4a`` and ``4b``, and ``figure_2``. ``claims`` are the numbers that only its
    text states. ``whole`` are those of which ``by_name`` has the ``chosen`` part (``narrowing.py``). Others may refer
    to the rest.
    """

    by_name: Mapping[str, Experiment]
    claims: Mapping[str, Claim] = field(default_factory=dict)
    whole: Mapping[str, Experiment] = field(default_factory=dict)
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def tables(self) -> Mapping[str, Experiment]:
        """The results for which the paper has numbers."""
        return {name: result for name, result in self.by_name.items() if result.section}

    @cached_property
    def models(self) -> frozenset[str]:
        """The models that the paper's tables are about."""
        return frozenset(table.model for table in self.tables.values())

    def table(self, name: str) -> Experiment:
        """Return a table of the paper. Raises ``DataError`` for an unknown one."""
        if name not in self.tables:
            raise DataError(f"the paper has no table {name}; there are {', '.join(self.tables)}")
        return self.tables[name]

    def cell(self, ref: str) -> Cell:
        """Return the cell ``table/row/column``, or the claim ``claim/name``. Raises ``DataError``."""
        match ref.split("/"):
            case [str(table), row, column] if table != CLAIM:
                return self.table(table).cell(row, column)
        return Cell(ref=ref, value=self.claim(ref).value)

    def claim(self, ref: str) -> Claim:
        """Return the claim ``name``, or ``claim/name``. Raises ``DataError``."""
        if (name := ref.removeprefix(f"{CLAIM}/")) not in self.claims:
            raise DataError(f"{ref} is not a number of the paper; write table/row/column or {CLAIM}/name")
        return self.claims[name]

    @property
    def documents(self) -> tuple[str, ...]:
        """Names of the founding documents' experiments, which are not results of the paper."""
        return tuple(name for name in self.by_name if name.startswith(_DOCUMENT))

    @property
    def others(self) -> tuple[str, ...]:
        """Names of all experiments that are not results of the paper: those asked for by ``experiment=``."""
        return tuple(name for name, plan in self.by_name.items() if plan.model and not plan.section)

    @property
    def combined(self) -> tuple[str, ...]:
        """Names of the experiments that list methods."""
        return tuple(name for name, plan in self.by_name.items() if plan.combined)

    def complete(self, name: str) -> Experiment:
        """Return an experiment with all its rows and columns. Raises ``DataError`` for an unknown one."""
        return self.whole.get(name) or self.experiment(name)

    def plans(self, names: Iterable[str]) -> tuple[PlannedRun, ...]:
        """Return the runs of some experiments, each once, also those of rows and columns that were not chosen."""
        parts = [self, *([replace(self, by_name={**self.by_name, **self.whole})] if self.whole else [])]
        return tuple(dict.fromkeys(run for name in names for part in parts for run in part.runs(name)))

    def cells(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield row and column of each measured cell, line by line. Raises ``DataError`` for an unknown experiment."""
        experiment = self.experiment(name)
        for row, line in experiment.rows.items():
            for column, spec in experiment.columns.items():
                if row in experiment.not_reproducible or not spec.metric or line.left_out(column, spec):
                    continue
                if line.ours or spec.ours or experiment.cell(row, column).value is not None:
                    yield row, column

    def metric(self, name: str, row: str, column: str) -> str:
        """Return the metric of a cell."""
        experiment = self._having(name, row, column)
        line = experiment.rows[row]
        return experiment.columns[column].metric.format(who=line.who, counts=line.counts or "calls")

    def runs(self, name: str) -> tuple[PlannedRun, ...]:
        """Return the runs of an experiment, each once and after the runs it needs."""
        runs = (with_needs(self.run(name, row, column)) for row, column in self.cells(name))
        return tuple(dict.fromkeys(chain.from_iterable(runs)))

    def run(self, name: str, row: str, column: str) -> PlannedRun:
        """Return the run that fills a cell."""
        experiment = self._having(name, row, column)
        if row not in experiment.rows or column not in experiment.columns or not experiment.columns[column].metric:
            raise DataError(f"experiment {name} has no measured cell {row}/{column}")
        line, spec = experiment.rows[row], experiment.columns[column]
        row_overrides = [
            override for override in line.overrides if not (spec.agents and override.startswith("agent.scaffold="))
        ]
        overrides = _for_method([*experiment.common, *spec.overrides, *row_overrides])
        if spec.evaluates and (line.adapts == "offline" or line.context):
            adapted = self.run(name, row, spec.evaluates)
            kept = [override for override in overrides if not override.startswith("mode")]
            need = Need(setting="mode.context", run=adapted, context=line.context or TESTED)
            return PlannedRun(overrides=_sort_overrides([*kept, "mode=evaluate"]), needs=(need,))
        needs: tuple[Need, ...] = ()
        if line.starts_from:
            experiment_name, _, from_row = line.starts_from.partition("/")
            needs = (Need(setting="method.initial", run=self.run(experiment_name, from_row, spec.evaluates or column)),)
        return PlannedRun(overrides=_sort_overrides([*overrides, f"mode={line.adapts or 'offline'}"]), needs=needs)

    def _having(self, name: str, row: str, column: str) -> Experiment:
        """Return an experiment, or the whole of it where its part lacks a row or a column that others refer to."""
        part = self.experiment(name)
        return part if row in part.rows and column in part.columns else self.complete(name)

    def experiment(self, name: str) -> Experiment:
        """Return an experiment. Raises ``DataError`` for an unknown one."""
        if name not in self.by_name:
            raise DataError(f"there is no experiment {name}; there are {', '.join(self.by_name)}")
        return self.by_name[name]


def with_needs(run: PlannedRun) -> Iterator[PlannedRun]:
    """Yield the runs that a run needs, then the run."""
    for need in run.needs:
        yield from with_needs(need.run)
    yield run


def load_experiments(folder: Traversable = DATA) -> Experiments:
    """Read all experiments, by default the package's.

    Raises ``DataError`` that names a damaged file, or a broken reference between them.
    """
    by_name: dict[str, Experiment] = {}
    files = folder.joinpath("experiments").iterdir()
    for file in sorted(files, key=lambda file: (not file.name.startswith(_RESULTS), file.name)):
        if file.name.endswith(".yaml"):
            name = _name(file.name.removesuffix(".yaml"))
            by_name[name] = changed(read_yaml(file, Experiment), id=name).with_combinations
            check_experiment(by_name[name], str(file))
    claims: dict[str, Claim] = read_yaml(folder.joinpath("claims.yaml"), dict[str, Claim])
    for name, claim in claims.items():
        check_unit(claim.unit, f"{folder.joinpath('claims.yaml')}: {name}")
    experiments = Experiments(by_name=by_name, claims=claims)
    for name, experiment in by_name.items():
        experiments.runs(name)
        for bars in experiment.bars.values():
            for ref in bars.values():
                experiments.cell(ref)
    return experiments


def _name(stem: str) -> str:
    kind, _, number = stem.partition("_")
    if not stem.startswith(_RESULTS):
        return stem
    return number.lstrip("0") if kind == "table" else f"{kind}_{number.lstrip('0')}"


def _for_method(overrides: Sequence[str]) -> list[str]:
    """Leave out the settings for other methods than the row's: ``gepa:sampling.proposer.max_tokens=16384``."""
    method = PlannedRun(overrides=tuple(overrides)).option("method")
    return [setting.override for setting in map(read_setting, overrides) if setting.only in ("", method)]


def _sort_overrides(overrides: list[str]) -> tuple[str, ...]:
    """Sort choices of groups before settings, each by name, so that equal runs have equal overrides."""
    return tuple(sorted(overrides, key=lambda override: ("." in override.partition("=")[0], override)))
