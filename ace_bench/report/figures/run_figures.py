"""Figures of the runs of one task: learning curves, cache reuse, and what adaptation cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING

from ace_bench.core.types import Stage
from ace_bench.report.evidence import read_calls
from ace_bench.report.figures.draw import Note, Panel, draw, series_of_cells
from ace_bench.report.figures.draw import Series as DrawnSeries
from ace_bench.report.figures.series import Series, TaskSeries, cache_curve, curve_series, score_curve, size_curve
from ace_bench.report.figures.style import cost_axis, count_axis, looks, percent_axis, size_axis
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Place, mean_of, measure
from ace_bench.report.tables.grids import column_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WINDOW = 50
"""Number of calls that each point of the cache curve averages over."""
_THOUSAND, _MILLION = 1e3, 1e6
_USUAL_PARTS = (
    *("adapt.generator", "adapt.reflector", "adapt.curator", "adapt.proposer"),
    *("evaluate.generator", "evaluate.judge", "adapt.judge"),
)
"""``stage.role`` of the calls in most runs: each has one colour in the figures of all tasks."""
_DIRECTIONS: Mapping[str, str] = {"in": "prompt", "out": "reply"}
_LABEL = 40
"""Characters of a line of a bar's name: longer ones leave the bars too little room."""


def learning_curves(task_series: TaskSeries) -> Figure | None:
    """Running mean score and size of the context by step, for the runs of one task and mode; ``None`` without steps."""
    adapted = [one for one in task_series.series if one.runs[0].metrics["steps"]]
    if not adapted:
        return None
    online = adapted[0].runs[0].mode == "online"
    scores, sizes = (
        [curve_series(curve(one.runs), one.name, task_series.looks[one.name]) for one in adapted]
        for curve in (score_curve, size_curve)
    )
    panels = [
        Panel(
            series=scores,
            x_label="test samples predicted" if online else "training samples, first rollouts",
            y_label="running mean of first rollouts (%)",
            scales=(percent_axis, count_axis),
        ),
        Panel(series=sizes, x_label="adaptation steps", y_label="context (tokens)", scales=(size_axis, count_axis)),
    ]
    return draw(panels, task_series.title, height=3.0)


def cache_reuse(task_series: TaskSeries) -> Figure | None:
    """Share of prompt tokens served from a cache, by call, for the runs of one task; ``None`` where unknown."""
    found = {one.name: cache_curve(read_calls(one.runs[0].folder), _WINDOW) for one in task_series.series}
    series = [
        DrawnSeries(
            name=name,
            look=task_series.looks[name],
            kind="curve",
            x=[100 * place / len(curve) for place in range(1, len(curve) + 1)],
            y=curve,
        )
        for name, curve in found.items()
        if curve
    ]
    if not series:
        return None
    panel = Panel(
        series=series,
        x_label=f"share of the run's calls made (%); each point over the last {_WINDOW} calls",
        y_label="cached prompt tokens (%)",
        scales=(lambda axis: axis.set_ylim(0, 100),),
    )
    return draw([panel], task_series.title, height=2.9)


def score_against_cost(task_series: TaskSeries) -> Figure | None:
    """Headline score over the cost of adaptation, for the runs of one task; ``None`` where no cost is known."""
    found = costs_of([one.runs for one in task_series.series], "adapt")
    known = [cost for cost in found.amounts if cost]
    if not known:
        return None
    headline = str(task_series.series[0].runs[0].metrics["headline"]["metric"])
    series = []
    for one, cost in zip(task_series.series, found.amounts, strict=True):
        score = measure(Place(row=one.name, column=headline, unit="percent"), None, headline, one.runs)
        if cost is not None and score.value is not None:
            series.append(series_of_cells(one.name, task_series.looks[one.name], [(cost, score)], "points"))
    panel = Panel(
        series=series,
        x_label="cost of adaptation (dollars)" if found.in_dollars else "tokens of adaptation, prompts and replies",
        y_label=f"{column_name(headline)} on the test split (%)",
        margins=(0.08, 0.15),
        scales=(partial(cost_axis, smallest=min(known)), percent_axis),
    )
    return draw([panel], task_series.title, height=3.0)


def cost_breakdown(task_series: TaskSeries) -> Figure | None:
    """Tokens by role and stage, for the runs of one task; ``None`` where nothing is known."""
    series = task_series.series
    parts = _parts(series)
    tokens = {
        direction: {
            part: [mean_of([run.value(f"spent.{part}.all.{direction}") for run in one.runs]) for one in series]
            for part in parts
        }
        for direction in _DIRECTIONS
    }
    if all(value is None for values in tokens["in"].values() for value in values):
        return None
    names = [fill(one.name, _LABEL) for one in series]
    lines = sum(name.count("\n") + 1 for name in names)
    panels = [_stacked(by_part, names, _DIRECTIONS[direction]) for direction, by_part in tokens.items()]
    figure = draw(panels, task_series.title, height=1.5 + 0.14 * lines + 0.1 * len(names), sharey=True)
    figure.axes[0].invert_yaxis()
    return figure


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What some groups of runs cost, each as a mean over its runs; ``None`` is unknown."""

    in_dollars: bool
    amounts: Sequence[float | None]


def costs_of(groups: Sequence[Sequence[RunSummary]], stage: str) -> Costs:
    """Return costs of a stage (or ``total``): dollars, or tokens if any dollars are unknown or all are zero."""
    dollars = [mean_of([run.value(f"usd.{stage}") for run in runs]) for runs in groups]
    if None not in dollars and any(dollars):
        return Costs(in_dollars=True, amounts=dollars)
    return Costs(in_dollars=False, amounts=[_tokens(runs, stage) for runs in groups])


def _tokens(runs: Sequence[RunSummary], stage: str) -> float | None:
    sides = [mean_of([run.value(f"tokens.{stage}.{side}") for run in runs]) for side in ("in", "out")]
    return None if None in sides else sum(side or 0.0 for side in sides)


def _stacked(by_part: Mapping[str, Sequence[float | None]], names: Sequence[str], what: str) -> Panel:
    """Stack the tokens of all parts on each other, one bar for each series."""
    drawn = looks([*_USUAL_PARTS, *sorted(set(by_part).difference(_USUAL_PARTS))])
    totals = [sum(value or 0.0 for value in line) for line in zip(*by_part.values(), strict=True)]
    unit, scale = _unit(totals)
    series, left = [], [0.0] * len(totals)
    for part, values in by_part.items():
        widths = [(value or 0.0) / scale for value in values]
        name, rows = part.replace(".", ": "), range(len(widths))
        series.append(DrawnSeries(name=name, look=drawn[part], kind="stack", x=rows, y=widths, low=left))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    unknown = [place for place in range(len(totals)) if any(values[place] is None for values in by_part.values())]
    notes = [Note(text="n/a", at=(left[place], place), shift=(2, 0), style={"va": "center"}) for place in unknown]
    return Panel(series=series, names=names, notes=notes, x_label=f"{what} tokens{unit}")


def _unit(totals: Sequence[float]) -> tuple[str, float]:
    """Return the name and the size of the unit that suits the largest number of tokens."""
    most = max(totals, default=0.0)
    if most < 10 * _THOUSAND:
        return "", 1.0
    return (" (thousands)", _THOUSAND) if most < 10 * _MILLION else (" (millions)", _MILLION)


def _parts(series: Sequence[Series]) -> list[str]:
    """Return ``stage.role`` of all calls, the usual ones first."""
    calls = [(stage, run.metrics["calls"][stage]) for stage in Stage for one in series for run in one.runs]
    found = {f"{stage}.{role}" for stage, roles in calls for role in roles}
    return [part for part in _USUAL_PARTS if part in found] + sorted(found.difference(_USUAL_PARTS))
