"""Figures over time: learning, context collapse, cache reuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ace_bench.report.evidence import read_calls, sharpest_fall
from ace_bench.report.experiments import Experiments, PlannedRun
from ace_bench.report.figures.series import Curve, TaskSeries, cache_curve, score_curve, size_curve
from ace_bench.report.figures.style import Look, canvas, count_axis, legend_below, looks, percent_axis, size_axis
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import mean_of
from ace_bench.report.tables.variants import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WINDOW = 50
"""Number of calls that each point of the cache curve averages over."""
_COLLAPSE = "figure_2"
_COLLAPSED = 0.5
"""A step that leaves this share of the tokens, or less, is a collapse."""


def learning_curves(task_series: TaskSeries) -> Figure | None:
    """Running mean score and size of the context by step, for the runs of one task and mode; ``None`` without steps."""
    adapted = [one for one in task_series.series if one.runs[0].metrics["steps"]]
    if not adapted:
        return None
    figure, (scores, sizes) = canvas(1, 2, 3.0)
    for one in adapted:
        _draw(scores, score_curve(one.runs), one.name, task_series.looks[one.name])
        _draw(sizes, size_curve(one.runs), one.name, task_series.looks[one.name])
    online = adapted[0].mode == "online"
    scores.set(
        xlabel="test samples predicted" if online else "training samples, first rollouts",
        ylabel="running mean of first rollouts (%)",
    )
    sizes.set(xlabel="adaptation steps", ylabel="context (tokens)")
    _fit_axes(sizes, scores)
    figure.suptitle(task_series.title, wrap=True)
    legend_below(figure, [scores])
    return figure


def context_collapse(experiments: Experiments, selection: Selection, title: str) -> Figure | None:
    """Size of the context by step under rewriting and under incremental updates (paper, figure 2)."""
    falls = _falls(experiments, selection)
    if not falls:
        return None
    figure, (sizes, scores) = canvas(1, 2, 3.0)
    for fall, look in zip(falls, looks([fall.name for fall in falls]).values(), strict=True):
        # One run: a mean over seeds would smooth the collapse.
        tokens, *_ = size_curve([fall.run])
        step = sharpest_fall([int(size) for size in tokens])
        collapsed = step is not None and tokens[step] <= _COLLAPSED * tokens[step - 1]
        name = fall.name if step is None or collapsed else fall.name + _fall_text(fall, tokens[step - 1], tokens[step])
        _draw(sizes, size_curve([fall.run]), name, look)
        _draw(scores, score_curve([fall.run]), name, look)
        if step is not None and collapsed:
            _mark_fall(sizes, fall, (step, tokens[step - 1], tokens[step]), look)
    sizes.set(xlabel="adaptation steps", ylabel="context (tokens)")
    sizes.margins(y=0.2)
    scores.set(xlabel="test samples predicted", ylabel="running mean of predictions (%)")
    _fit_axes(sizes, scores)
    model = experiments.paper.table(experiments.by_name[_COLLAPSE].paper).model
    depart = any(selection.deviations(fall.planned, model) for fall in falls)
    figure.suptitle(title + "\n[not the paper's setting]" * (depart and selection.variant.comparable), wrap=True)
    legend_below(figure, [sizes])
    return figure


def cache_reuse(task_series: TaskSeries) -> Figure | None:
    """Share of prompt tokens served from a cache, by call, for the runs of one task; ``None`` where unknown."""
    found = {one.name: cache_curve(read_calls(one.runs[0].folder), _WINDOW) for one in task_series.series}
    curves = {name: curve for name, curve in found.items() if curve}
    if not curves:
        return None
    figure, (axis,) = canvas(1, 1, 2.9)
    for name, curve in curves.items():
        share = [100 * place / len(curve) for place in range(1, len(curve) + 1)]
        look = task_series.looks[name]
        axis.plot(share, curve, label=name, color=look.colour, linestyle=look.line, linewidth=look.width)
    axis.set(xlabel=f"share of the run's calls made (%); each point over the last {_WINDOW} calls")
    axis.set_ylabel("cached prompt tokens (%)")
    axis.set_ylim(0, 100)
    figure.suptitle(task_series.title, wrap=True)
    legend_below(figure, [axis])
    return figure


def _fit_axes(sizes: Axes, scores: Axes) -> None:
    size_axis(sizes)
    percent_axis(scores)
    for axis in (sizes, scores):
        count_axis(axis)


def _draw(axis: Axes, curve: Curve, name: str, look: Look) -> None:
    mean, low, high = curve
    steps = range(1, len(mean) + 1)
    axis.plot(
        steps,
        mean,
        label=name,
        color=look.colour,
        linestyle=look.line,
        linewidth=look.width,
        marker=look.marker,
        markersize=2.8 * look.width,
        markevery=max(1, len(mean) // 6),
    )
    if low != high:
        axis.fill_between(steps, low, high, color=look.colour, alpha=0.15, linewidth=0)


def _fall_text(fall: _Fall, before: float, after: float) -> str:
    """Describe the largest loss of tokens if it is no collapse, and if a context before or after it was evaluated."""
    if not fall.accuracies:
        return ""
    accuracies = ", ".join(f"{value:.1f} {who}" for who, value in fall.accuracies.items())
    return f"\n(sharpest fall: {before:,.0f} to {after:,.0f} tokens,\naccuracy {accuracies})"


def _mark_fall(axis: Axes, fall: _Fall, sizes: tuple[int, float, float], look: Look) -> None:
    """Label a collapse with the sizes before and after it, and with the accuracies if those contexts were evaluated."""
    step, before, after = sizes
    for place, size, who in ((step, before, "before"), (step + 1, after, "after")):
        accuracy = fall.accuracies.get(who)
        axis.annotate(
            f"{size:,.0f} tokens" + ("" if accuracy is None else f"\naccuracy {accuracy:.1f}"),
            (place, size),
            xytext=(-4, 4) if who == "before" else (4, 4),
            textcoords="offset points",
            ha="right" if who == "before" else "left",
            color=look.colour,
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )


@dataclass(frozen=True, kw_only=True)
class _Fall:
    """A run whose context may have collapsed, and the accuracy of its contexts ``before`` and ``after``."""

    name: str
    planned: PlannedRun
    run: RunSummary
    accuracies: Mapping[str, float]


def _falls(experiments: Experiments, selection: Selection) -> list[_Fall]:
    experiment = experiments.by_name[_COLLAPSE]
    paper = experiments.paper.table(experiment.paper)
    names: dict[PlannedRun, str] = {}
    accuracies: dict[PlannedRun, dict[str, float]] = {}
    for row, line in experiment.rows.items():
        if line.adapts:
            planned = experiments.run(_COLLAPSE, row, "tokens")
            names.setdefault(planned, line.label or paper.rows[row].label.partition(",")[0])
            tested = selection.finished(experiments.run(_COLLAPSE, row, "accuracy"))
            accuracy = mean_of([run.value(experiment.columns["accuracy"].metric) for run in tested])
            if accuracy is not None:
                accuracies.setdefault(planned, {})[line.who] = accuracy
    return [
        _Fall(name=name, planned=planned, run=runs[0], accuracies=accuracies.get(planned, {}))
        for planned, name in names.items()
        if (runs := selection.finished(planned))
    ]
