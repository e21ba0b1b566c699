"""Figures of the runs of one task: learning curves, cache reuse, and what adaptation cost."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from ace_bench.core.types import Stage
from ace_bench.report.evidence import read_calls
from ace_bench.report.figures.axes import (
    cost_axis,
    count_axis,
    draw_cells,
    draw_curve,
    label_axes,
    percent_axis,
    size_axis,
)
from ace_bench.report.figures.series import ComparedRuns, cache_curve, score_curve, size_curve
from ace_bench.report.figures.style import Look, Sheet, add_legend, looks, new_figure
from ace_bench.report.tables.cells import Place, mean_of, measure
from ace_bench.report.tables.field import tokens
from ace_bench.report.tables.grids import column_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WINDOW = 50
"""Number of calls that each point of the cache curve averages over."""
_USUAL_PARTS = (
    *("adapt.generator", "adapt.reflector", "adapt.curator", "adapt.proposer"),
    *("evaluate.generator", "evaluate.judge", "adapt.judge"),
)
"""``stage.role`` of the calls in most runs: each has one colour in the figures of all tasks."""
_STAGES = {"adapt": "Adaptation", "evaluate": "Evaluation"}
_DIRECTIONS: Mapping[str, str] = {"in": "Prompt", "out": "Reply"}
_LETTERS = 40
"""Letters of a line of a bar's name: longer ones leave the bars too little room."""
_UNITS = (("", 1.0), (" (thousands)", 1e3), (" (millions)", 1e6))


def draw_learning_curves(compared: ComparedRuns, sheet: Sheet) -> Figure | None:
    """Draw running mean score and size of the context by step, for runs with steps of one task and mode."""
    run = compared.series[0].runs[0]
    figure, (scores, sizes) = new_figure(compared.title, sheet, 2, height=3.0)
    for series in compared.series:
        draw_curve(scores, series.name, series.look, score_curve(series.runs))
        draw_curve(sizes, series.name, series.look, size_curve(series.runs))
    samples = "Test samples" if run.mode == "online" else "Training samples"
    metric = column_name(run.metrics["headline"]["metric"])
    label_axes(scores, samples, f"{column_name(run.task)} {metric} so far (%)")
    percent_axis(scores)
    count_axis(scores)
    label_axes(sizes, "Adaptation steps", "Context (tokens)")
    size_axis(sizes)
    count_axis(sizes)
    return add_legend(figure, compared.omitted)


def draw_cache_reuse(compared: ComparedRuns, sheet: Sheet) -> Figure | None:
    """Draw the share of prompt tokens served from a cache, by call. Returns ``None`` if no run knows it."""
    curves = [(series, cache_curve(read_calls(series.runs[0].folder), _WINDOW)) for series in compared.series]
    known_curves = [(series, curve) for series, curve in curves if curve is not None]
    if not known_curves:
        return None
    figure, (axis,) = new_figure(compared.title, sheet, height=2.9)
    for series, curve in known_curves:
        look, done = series.look, 100 * (curve.index + 1) / len(curve)
        axis.plot(done, curve, label=series.name, color=look.colour, linestyle=look.line, linewidth=look.width)
    label_axes(axis, f"Calls made (%); each point: the last {_WINDOW}", "Cached prompt tokens (%)")
    axis.set_ylim(0, 100)
    return add_legend(figure, compared.omitted)


def draw_score_against_cost(compared: ComparedRuns, sheet: Sheet) -> Figure | None:
    """Draw the headline score over the cost of adaptation. Returns ``None`` if no cost is known.

    Costs are tokens if any dollars are unknown or all are zero.
    """
    series = compared.series
    costs = [mean_of([run.value("usd.adapt") for run in line.runs]) for line in series]
    in_dollars = None not in costs and any(costs)
    if not in_dollars:
        costs = [mean_of([tokens(run, "adapt") for run in line.runs]) for line in series]
    if not any(costs):
        return None
    task, headline = series[0].runs[0].task, str(series[0].runs[0].metrics["headline"]["metric"])
    figure, (axis,) = new_figure(compared.title, sheet, height=3.0)
    for line, cost in zip(series, costs, strict=True):
        score = measure(Place(row=line.name, column=headline, unit="percent"), None, headline, line.runs)
        if cost is not None and score.value is not None:
            draw_cells(axis, line.name, line.look, [(cost, score)], joined=False)
    unit = "dollars" if in_dollars else "tokens"
    label_axes(axis, f"Cost of adaptation ({unit})", f"{column_name(task)} {column_name(headline)} (%)")
    axis.margins(0.08, 0.15)
    cost_axis(axis, smallest=min(cost for cost in costs if cost))
    percent_axis(axis)
    return add_legend(figure, compared.omitted)


def draw_cost_breakdown(compared: ComparedRuns, sheet: Sheet) -> Figure | None:
    """Draw tokens by role and stage as stacked bars. Returns ``None`` if nothing is known."""
    spent = {way: _tokens_by_part(compared, way) for way in _DIRECTIONS}
    if spent["in"].isna().all(axis=None):
        return None
    names = [fill(series.name, _LETTERS) for series in compared.series]
    lines = sum(name.count("\n") + 1 for name in names)
    height = 1.5 + 0.14 * lines + 0.1 * len(names)
    figure, axes = new_figure(compared.title, sheet, len(spent), height=height, sharey=True)
    for axis, (way, table) in zip(axes, spent.items(), strict=True):
        unit = _stack_bars(axis, table)
        axis.set_yticks(range(len(names)), names)
        axis.grid(visible=False, axis="y")
        label_axes(axis, f"{_DIRECTIONS[way]} tokens{unit}")
    axes[0].invert_yaxis()  # the first bar stands on top
    return add_legend(figure, compared.omitted)


def _tokens_by_part(compared: ComparedRuns, way: str) -> pd.DataFrame:
    """Return the mean tokens over seeds, a row for each series and a column for each part. Unknown ones are NaN."""
    import pandas as pd

    calls = [
        (stage, run.metrics["calls"][stage]) for stage in Stage for series in compared.series for run in series.runs
    ]
    called_parts = {f"{stage}.{role}" for stage, roles in calls for role in roles}
    parts = [part for part in _USUAL_PARTS if part in called_parts] + sorted(called_parts.difference(_USUAL_PARTS))
    tokens = {
        part: [mean_of([run.value(f"spent.{part}.all.{way}") for run in series.runs]) for series in compared.series]
        for part in parts
    }
    return pd.DataFrame(tokens, dtype=float)


def _stack_bars(axis: Axes, tokens: pd.DataFrame) -> str:
    """Stack the tokens of all parts on each other, one bar for each row. Return the unit."""
    drawn = looks([*_USUAL_PARTS, *sorted({*tokens}.difference(_USUAL_PARTS))])
    most = tokens.sum(axis=1).max()
    unit, scale = next((unit_and_scale for unit_and_scale in _UNITS if most < 1e4 * unit_and_scale[1]), _UNITS[-1])
    widths = tokens.fillna(0.0) / scale
    ends = widths.cumsum(axis=1)
    for part, width in widths.items():
        stage, _, role = str(part).partition(".")
        look: Look = drawn[str(part)]
        name = f"{_STAGES[stage]}: {role.replace('_', ' ').capitalize()}"
        axis.barh(range(len(width)), width, left=ends[part] - width, label=name, color=look.colour, hatch=look.hatch,
                  edgecolor="white", height=0.7)  # fmt: skip
    for row in tokens.index[tokens.isna().any(axis=1)]:
        end = (ends.loc[row].iloc[-1], row)
        axis.annotate("n/a", end, (2, 0), textcoords="offset points", fontsize=7, va="center")
    return unit
