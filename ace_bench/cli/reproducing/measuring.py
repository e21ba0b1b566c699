"""Makes the measurements of a request: experiments whose table a function of the product returns."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from ace_bench.cli.reproducing.request import ReproduceRequest, jobs
from ace_bench.core.errors import ConfigError
from ace_bench.core.measurement import Measure, MeasurementRequest
from ace_bench.report.experiments import Experiments
from ace_bench.report.planned import Compose, read_setting
from ace_bench.report.tables.write import TableFiles, measured_table
from ace_bench.runners.identifying import check_backbones

_MODEL = "backbone.model="


def measured_tables(request: ReproduceRequest, experiments: Experiments) -> Mapping[str, TableFiles]:
    """Call the function of each measurement asked for; returns their tables by name."""
    return {name: _measured(name, request, experiments) for name in measurements(request, experiments)}


def measurements(request: ReproduceRequest, experiments: Experiments) -> list[str]:
    """Return the names of the experiments asked for that are measurements."""
    return [name for name in request.names if experiments.by_name[name].measure]


def check_measurements(request: ReproduceRequest, experiments: Experiments, compose: Compose) -> None:
    """Compose the settings of each measurement and build its backbone, which sends nothing.

    Settings that no measurement takes are for the runs of the request. Raises ``ConfigError`` if it has none.
    """
    names = measurements(request, experiments)
    for name in names:
        wanted = _wanted(name, request, experiments)
        if "backbone" in experiments.by_name[name].takes:
            check_backbones(compose([f"backbone={wanted.backbone}", *wanted.settings]))
        else:
            compose(wanted.settings)
    taken = {setting for name in names for setting in _wanted(name, request, experiments).settings}
    left = [setting for setting in request.overrides if setting not in taken]
    if names and left and not jobs(request, experiments):
        groups = dict.fromkeys(group for name in names for group in experiments.by_name[name].takes)
        raise ConfigError(f"{left[0]} is for runs, and {', '.join(names)} needs none; it takes settings of "
                          f"{', '.join(groups)}, seed=... and results=...")  # fmt: skip


def _measured(name: str, request: ReproduceRequest, experiments: Experiments) -> TableFiles:
    experiment = experiments.by_name[name]
    measure: Measure = resolve_name(experiment.measure)
    wanted = _wanted(name, request, experiments)
    models = [setting.removeprefix(_MODEL) for setting in wanted.settings if setting.startswith(_MODEL)]
    return measured_table(name, experiment, measure(wanted), (wanted.backbone, *models))


def _wanted(name: str, request: ReproduceRequest, experiments: Experiments) -> MeasurementRequest:
    takes = experiments.by_name[name].takes
    read = map(read_setting, request.overrides)
    return MeasurementRequest(
        backbone=request.backbone or experiments.by_name[name].model,
        settings=tuple(setting.override for setting in read if not setting.only and setting.path[0] in takes),
        seeds=request.seeds,
        folder=request.results / "measurements" / name,
    )
