"""A user's request: results of the paper to reproduce, with backbone, seeds and settings; its runs and measurements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name

from ace_bench.cli.tables import read_style
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.measurement import Measure, MeasurementRequest
from ace_bench.report.experiments import Experiments, with_needs
from ace_bench.report.narrowing import AXES, Chosen, read_choice
from ace_bench.report.planned import Compose, PlannedRun, read_setting
from ace_bench.report.tables.results_index import Style
from ace_bench.report.tables.write import TableFiles, measured_table
from ace_bench.runners.build import check_budget_prices
from ace_bench.runners.settings import build_backbones, decode_backbones, read_settings

FIGURES = {
    "figure_1": "overall",
    "figure_2": "collapse",
    "figure_5": "leaderboard",
    "field": "field",
    "combee": "speed",
}
"""The kind of figure that each result is drawn as. The others are tables."""

EMBEDDED = "embedded"
"""The backbone of a rehearsal, which uses sample data and costs nothing."""


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """``names`` are experiments, ``backbone`` is "" for each table's own, ``overrides`` are settings for the runs.

    ``chosen`` is the part of them that is wanted (``narrowing.py``).
    With ``differences`` all numbers are compared with the paper's. ``looks`` is how often the tables are looked at in
    all, while seeds are added. ``style`` is the style of figures.
    """

    names: tuple[str, ...]
    backbone: str
    seeds: tuple[int, ...]
    results: Path
    overrides: tuple[str, ...]
    chosen: Chosen = field(default_factory=dict)
    differences: bool = False
    looks: int = 1
    style: Style = "screen"

    def extra(self, model: str) -> tuple[str, ...]:
        """Return the overrides that all runs get besides their own. ``model`` is the paper's for the table."""
        backbone = self.backbone or model
        source = ("task.source=sample",) if backbone == EMBEDDED else ()
        return (f"backbone={backbone}", *source, *self.overrides)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to make: its plan, additional overrides, and its seed."""

    planned: PlannedRun
    extra: tuple[str, ...]
    seed: int

    @property
    def name(self) -> str:
        """What tells it from the other runs of a request, in a few words."""
        chosen = (word for word in self.planned.overrides if not word.startswith("mode.before"))
        return " ".join([*(re.sub(r"^(task|method|mode)=", "", word) for word in chosen), f"seed={self.seed}"])


def read_request(
    settings: Sequence[str], experiments: Experiments, *, differences: bool = False, looks: int = 1
) -> ReproduceRequest:
    """Parse ``table=2 backbone=... seed=0,1 limit=20``. Raises ``ConfigError`` and ``DataError``."""
    names: dict[str, None] = {}
    values = {"backbone": "", "seed": "0", "results": "results", "style": "screen"}
    choice: list[str] = []
    overrides: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"{setting} is not a setting; write table={setting}, or KEY=VALUE")
        match key:
            case "table" | "figure" | "experiment":
                names.update(dict.fromkeys(_names(key, value, experiments)))
            case str(name) if name in values:
                values[name] = value
            case str(axis) if axis in AXES:
                choice.append(setting)
            case "task" | "method" | "mode" | "labels":
                raise ConfigError(f"{setting} would make all rows alike: they choose their own {key}, so leave it out")
            case _:
                overrides.pop(key, None)  # of a repeated setting the last value counts, as for a single run
                overrides[key] = setting
    if not names:
        raise ConfigError(
            "say what to reproduce: table=2, table=1,3, figure=2, table=all, experiment=all; --list shows the choices"
        )
    seeds = values["seed"]
    if not all(seed.isdecimal() for seed in seeds.split(",")):
        raise ConfigError(f"seed={seeds} must be whole numbers from 0 up, such as seed=0,1,2")
    return ReproduceRequest(
        names=tuple(names),
        backbone=values["backbone"],
        seeds=tuple(dict.fromkeys(map(int, seeds.split(",")))),
        results=Path(values["results"]),
        overrides=tuple(overrides.values()),
        chosen=read_choice(choice),
        differences=differences,
        looks=looks,
        style=read_style(values["style"]),
    )


def jobs(request: ReproduceRequest, experiments: Experiments) -> list[Job]:
    """Return all runs of a request, each once and after its dependencies."""
    distinct: dict[Job, None] = {}
    for name in request.names:
        for table, planned in _planned_runs(name, experiments):
            extra = request.extra(experiments.by_name[table].model)
            distinct.update(dict.fromkeys(Job(planned=planned, extra=extra, seed=seed) for seed in request.seeds))
    return list(distinct)


def count(name: str, experiments: Experiments) -> int:
    """Return the number of runs of an experiment, for one seed."""
    return len(dict.fromkeys(_planned_runs(name, experiments)))


def _names(kind: str, value: str, experiments: Experiments) -> Iterator[str]:
    """Yield the experiments that ``table=``, ``figure=`` or ``experiment=`` names; "all" is not every one of them."""
    names = [name for name in paper_results(experiments) if count(name, experiments)]
    numbers = {name: name.removeprefix("figure_") for name in names if name.startswith("figure_") == (kind == "figure")}
    for wanted in value.split(","):
        if kind == "experiment":
            if wanted not in (*experiments.others, "all"):
                raise DataError(f"there is no experiment {wanted}; there are {', '.join(experiments.others)} and all")
            yield from experiments.documents if wanted == "all" else (wanted,)
            continue
        if wanted in experiments.others:
            raise DataError(f"{wanted} is not a {kind} of the paper; write experiment={wanted}")
        # table=4 is 4a and 4b.
        matching = (
            names
            if wanted == "all"
            else [name for name, number in numbers.items() if wanted in (number, number.rstrip("ab"))]
        )
        if not matching:
            raise DataError(f"no runs make {kind} {wanted}; there are {kind}s {', '.join(numbers.values())}")
        yield from matching


def paper_results(experiments: Experiments) -> list[str]:
    """Return the names of the paper's tables and figures; ``table=all`` means these that need runs."""
    return [name for name in experiments.by_name if name not in experiments.others]


def _planned_runs(name: str, experiments: Experiments) -> Iterator[tuple[str, PlannedRun]]:
    """Yield the runs of an experiment with the table whose model they are made with."""
    yield from ((name, planned) for planned in experiments.runs(name))
    for bars in experiments.by_name[name].bars.values():
        for ref in bars.values():
            table, row, column = ref.split("/")
            if row in experiments.by_name[table].not_reproducible:
                continue
            for part in experiments.table(table).columns[column].mean_of or (column,):
                yield from ((table, planned) for planned in with_needs(experiments.run(table, row, part)))


def measured_tables(request: ReproduceRequest, experiments: Experiments) -> Mapping[str, TableFiles]:
    """Call the function of each measurement asked for. Returns their tables by name."""
    tables = {}
    for name in measurements(request, experiments):
        experiment, wanted = experiments.by_name[name], _measurement_request(name, request, experiments)
        measure: Measure = resolve_name(experiment.measure)
        models = [
            text.removeprefix("backbone.model=") for text in wanted.settings if text.startswith("backbone.model=")
        ]
        tables[name] = measured_table(name, experiment, measure(wanted), (wanted.backbone, *models))
    return tables


def measurements(request: ReproduceRequest, experiments: Experiments) -> list[str]:
    """Return the names of the experiments asked for that are measurements."""
    return [name for name in request.names if experiments.by_name[name].measure]


def check_measurements(request: ReproduceRequest, experiments: Experiments, compose: Compose) -> None:
    """Compose the settings of each measurement and build its backbone, which sends nothing.

    Settings that no measurement takes are for the runs of the request. Raises ``ConfigError`` if it has none.
    """
    names = measurements(request, experiments)
    for name in names:
        wanted = _measurement_request(name, request, experiments)
        if "backbone" in experiments.by_name[name].takes:
            settings = compose([f"backbone={wanted.backbone}", *wanted.settings])
            check_budget_prices(read_settings(settings).budget, build_backbones(decode_backbones(settings)))
        else:
            compose(wanted.settings)
    taken = {setting for name in names for setting in _measurement_request(name, request, experiments).settings}
    unused = [setting for setting in request.overrides if setting not in taken]
    if names and unused and not jobs(request, experiments):
        groups = dict.fromkeys(chain.from_iterable(experiments.by_name[name].takes for name in names))
        raise ConfigError(f"{unused[0]} is for runs, and {', '.join(names)} needs none; it takes settings of "
                          f"{', '.join(groups)}, seed=... and results=...")  # fmt: skip


def _measurement_request(name: str, request: ReproduceRequest, experiments: Experiments) -> MeasurementRequest:
    takes = experiments.by_name[name].takes
    read = map(read_setting, request.overrides)
    return MeasurementRequest(
        backbone=request.backbone or experiments.by_name[name].model,
        settings=tuple(setting.override for setting in read if not setting.only and setting.path[0] in takes),
        seeds=request.seeds,
        folder=request.results / "measurements" / name,
    )
