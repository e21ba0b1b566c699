"""Figures of costs: score against the cost of adaptation, and tokens by stage and role.

``adaptation_costs`` and ``tokens_by_part`` gather the numbers; the other functions draw them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from ace_bench.core.types import Stage
from ace_bench.report.figures.series import Series, TaskSeries
from ace_bench.report.figures.style import Look, canvas, cost_axis, legend_below, looks, percent_axis
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Measured, Place, error_bars, mean_of, measure
from ace_bench.report.tables.grids import column_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_THOUSAND, _MILLION = 1e3, 1e6
_USUAL_PARTS = (
    *("adapt.generator", "adapt.reflector", "adapt.curator", "adapt.proposer"),
    *("evaluate.generator", "evaluate.judge", "adapt.judge"),
)
"""``stage.role`` of the calls in most runs: each has one colour in the figures of all tasks."""
_DIRECTIONS: Mapping[str, str] = {"in": "prompt", "out": "reply"}
_LABEL = 40
"""Characters of a line of a bar's name: longer ones leave the bars too little room."""


@dataclass(frozen=True, kw_only=True)
class AdaptationCosts:
    """What adaptation cost by series: in dollars, or in tokens if any dollars are unknown or all are zero."""

    in_dollars: bool
    by_name: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class PartTokens:
    """Tokens of one ``stage.role`` by series, in one direction; ``None`` where unknown."""

    part: str
    values: Sequence[float | None]


def adaptation_costs(series: Sequence[Series]) -> AdaptationCosts | None:
    """Return the cost of each series' adaptation, ``None`` where no cost is known."""
    dollars = {one.name: mean_of([run.value("usd.adapt") for run in one.runs]) for one in series}
    charged = None not in dollars.values() and any(dollars.values())
    costs = dollars if charged else {one.name: _tokens(one.runs) for one in series}
    return AdaptationCosts(in_dollars=charged, by_name=costs) if any(costs.values()) else None


def tokens_by_part(series: Sequence[Series], direction: str) -> list[PartTokens]:
    """Return the tokens of each ``stage.role`` that made calls; ``direction`` is ``in`` or ``out``."""
    return [
        PartTokens(
            part=part,
            values=[mean_of([run.value(f"spent.{part}.all.{direction}") for run in one.runs]) for one in series],
        )
        for part in _parts(series)
    ]


def score_against_cost(task_series: TaskSeries) -> Figure | None:
    """Headline score over the cost of adaptation, for the runs of one task; ``None`` where no cost is known."""
    costs = adaptation_costs(task_series.series)
    if costs is None:
        return None
    figure, (axis,) = canvas(1, 1, 3.0)
    for one in task_series.series:
        cost, score = costs.by_name[one.name], _score(one)
        if cost is not None and score.value is not None:
            _mark(axis, cost, score, one.name, task_series.looks[one.name])
    cost_axis(axis, min(cost for cost in costs.by_name.values() if cost))
    axis.set(
        xlabel="cost of adaptation (dollars)" if costs.in_dollars else "tokens of adaptation, prompts and replies",
        ylabel=f"{column_name(_headline(task_series.series[0]))} on the test split (%)",
    )
    axis.margins(x=0.08, y=0.15)
    percent_axis(axis)
    figure.suptitle(task_series.title, wrap=True)
    legend_below(figure, [axis])
    return figure


def cost_breakdown(task_series: TaskSeries) -> Figure | None:
    """Tokens by role and stage, for the runs of one task; ``None`` where nothing is known."""
    names = [one.name for one in task_series.series]
    tokens = {direction: tokens_by_part(task_series.series, direction) for direction in _DIRECTIONS}
    if all(value is None for part in tokens["in"] for value in part.values):
        return None
    found = [part.part for part in tokens["in"]]
    drawn = looks([*_USUAL_PARTS, *sorted(set(found).difference(_USUAL_PARTS))])
    labels = [fill(name, _LABEL) for name in names]
    lines = sum(label.count("\n") + 1 for label in labels)
    figure, axes = canvas(1, 2, 1.5 + 0.14 * lines + 0.1 * len(names), sharey=True)
    for axis, (direction, parts) in zip(axes, tokens.items(), strict=True):
        unit = _stack(axis, parts, drawn)
        axis.set_xlabel(f"{_DIRECTIONS[direction]} tokens{unit}")
        axis.set_yticks(range(len(names)), labels)
        axis.grid(visible=False, axis="y")
    axes[0].invert_yaxis()
    figure.suptitle(task_series.title, wrap=True)
    legend_below(figure, axes)
    return figure


def _mark(axis: Axes, cost: float, score: Measured, name: str, look: Look) -> None:
    error = [[side] for side in error_bars(score)]
    axis.errorbar(
        cost, score.value or 0.0, yerr=error, label=name, color=look.colour, marker=look.marker, linestyle="", capsize=2
    )


def _stack(axis: Axes, parts: Sequence[PartTokens], drawn: Mapping[str, Look]) -> str:
    """Draw one stacked bar per series; return the unit of the axis."""
    totals = [sum(value or 0.0 for value in line) for line in zip(*(part.values for part in parts), strict=True)]
    unit, scale = _unit(totals)
    left = [0.0] * len(totals)
    for part in parts:
        look, label = drawn[part.part], part.part.replace(".", ": ")
        widths = [(value or 0.0) / scale for value in part.values]
        axis.barh(range(len(left)), widths, left=left, label=label, color=look.colour, hatch=look.hatch,
                  edgecolor="white", height=0.7)  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for place, end in enumerate(left):
        if any(part.values[place] is None for part in parts):
            axis.annotate("n/a", (end, place), (2, 0), textcoords="offset points", va="center", fontsize=7)
    return unit


def _unit(totals: Sequence[float]) -> tuple[str, float]:
    """Return the name and the size of the unit that suits the largest number of tokens."""
    most = max(totals, default=0.0)
    if most < 10 * _THOUSAND:
        return "", 1.0
    return (" (thousands)", _THOUSAND) if most < 10 * _MILLION else (" (millions)", _MILLION)


def _tokens(runs: Sequence[RunSummary]) -> float | None:
    sides = [mean_of([run.value(f"tokens.adapt.{side}") for run in runs]) for side in ("in", "out")]
    return None if None in sides else sum(side or 0.0 for side in sides)


def _headline(series: Series) -> str:
    return str(series.runs[0].metrics["headline"]["metric"])


def _score(series: Series) -> Measured:
    metric = _headline(series)
    return measure(Place(row=series.name, column=metric, unit="percent"), None, metric, series.runs)


def _parts(series: Sequence[Series]) -> list[str]:
    """Return ``stage.role`` of all calls, the usual ones first."""
    calls = [(stage, run.metrics["calls"][stage]) for stage in Stage for one in series for run in one.runs]
    found = {f"{stage}.{role}" for stage, roles in calls for role in roles}
    return [part for part in _USUAL_PARTS if part in found] + sorted(found.difference(_USUAL_PARTS))
