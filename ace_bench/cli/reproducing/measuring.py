"""Makes the measurements of a request: experiments whose table a function of the product returns."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from ace_bench.cli.reproducing.request import ReproduceRequest
from ace_bench.core.measurement import Measure, MeasurementRequest
from ace_bench.report.experiments import Experiments
from ace_bench.report.tables.measured import TableFiles, measured_table


def measured_tables(request: ReproduceRequest, experiments: Experiments) -> Mapping[str, TableFiles]:
    """Call the function of each measurement asked for; returns their tables by name."""
    return {name: _measured(name, request, experiments) for name in measurements(request, experiments)}


def measurements(request: ReproduceRequest, experiments: Experiments) -> list[str]:
    """Return the names of the experiments asked for that are measurements."""
    return [name for name in request.names if experiments.by_name[name].measure]


def _measured(name: str, request: ReproduceRequest, experiments: Experiments) -> TableFiles:
    experiment = experiments.by_name[name]
    backbone = request.backbone or experiments.model(name)
    measure: Measure = resolve_name(experiment.measure)
    folder = request.results / "measurements" / name
    wanted = MeasurementRequest(backbone=backbone, settings=request.overrides, seeds=request.seeds, folder=folder)
    return measured_table(name, experiment, measure(wanted), backbone)
