"""The paper's figure 2: a context that is rewritten as a whole may collapse, and one that grows does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ace_bench.report.evidence import sharpest_fall
from ace_bench.report.figures.axes import count_axis, draw_curve, draw_level, label_axes, percent_axis, size_axis
from ace_bench.report.figures.paper_figures import BASES_LOOK
from ace_bench.report.figures.series import score_curve, size_curve
from ace_bench.report.figures.style import Look, Sheet, add_legend, looks, new_figure
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import mean_of
from ace_bench.report.tables.results_index import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLLAPSE = "figure_2"
_COLLAPSED = 0.5
"""A step that leaves this share of the tokens, or less, is a collapse."""


def draw_context_collapse(selection: Selection, title: str, sheet: Sheet) -> Figure | None:
    """Draw the size of the context by step under rewriting and under incremental updates (paper, figure 2)."""
    falls = _falls(selection)
    if not falls:
        return None
    experiment = selection.experiments.by_name[_COLLAPSE]
    depart = any(selection.deviations(fall.planned, experiment.model) for fall in falls)
    warning = "\n[not the paper's setting]" * (depart and selection.variant.comparable)
    figure, (sizes, scores) = new_figure(title + warning, sheet, 2, height=3.0)
    for fall, look in zip(falls, looks([fall.name for fall in falls]).values(), strict=True):
        # It shows one run, because a mean over seeds would smooth the collapse.
        curve = size_curve([fall.run])
        tokens = [*curve["mean"]]
        step = sharpest_fall([int(size) for size in tokens])
        name = fall.name
        if step is not None and tokens[step] <= _COLLAPSED * tokens[step - 1]:
            _label_collapse(sizes, fall, (step, tokens[step - 1], tokens[step]), look)
        elif step is not None:
            name += _fall_text(fall, tokens[step - 1], tokens[step])
        draw_curve(sizes, name, look, curve)
        draw_curve(scores, name, look, score_curve([fall.run]))
    base = selection.finished(selection.experiments.run(_COLLAPSE, "baseline", "accuracy"))
    level = mean_of([run.value(experiment.columns["accuracy"].metric) for run in base])
    if level is not None:
        draw_level(scores, "ReAct, no adaptation", BASES_LOOK, level)
    label_axes(sizes, "Adaptation steps", "Context (tokens)")
    sizes.margins(0.05, 0.2)
    size_axis(sizes)
    count_axis(sizes)
    label_axes(scores, "Test samples", "TGC of the samples so far (%)")
    percent_axis(scores)
    count_axis(scores)
    return add_legend(figure)


@dataclass(frozen=True, kw_only=True)
class _Fall:
    """A run whose context may have collapsed, and the accuracy of its contexts ``before`` and ``after``."""

    name: str
    planned: PlannedRun
    run: RunSummary
    accuracies: Mapping[str, float]


def _falls(selection: Selection) -> list[_Fall]:
    experiments = selection.experiments
    experiment = experiments.by_name[_COLLAPSE]
    names: dict[PlannedRun, str] = {}
    accuracies: dict[PlannedRun, dict[str, float]] = {}
    for row, line in experiment.rows.items():
        if line.adapts:
            planned = experiments.run(_COLLAPSE, row, "tokens")
            names.setdefault(planned, line.label if line.ours else line.label.partition(",")[0])
            tested = selection.finished(experiments.run(_COLLAPSE, row, "accuracy"))
            accuracy = mean_of([run.value(experiment.columns["accuracy"].metric) for run in tested])
            if accuracy is not None:
                accuracies.setdefault(planned, {})[line.who] = accuracy
    return [
        _Fall(name=name, planned=planned, run=runs[0], accuracies=accuracies.get(planned, {}))
        for planned, name in names.items()
        if (runs := selection.finished(planned))
    ]


def _fall_text(fall: _Fall, before: float, after: float) -> str:
    """Describe the largest loss of tokens, if it is not a collapse and a context before or after it was evaluated."""
    if not fall.accuracies:
        return ""
    accuracies = ", ".join(f"{value:.1f} {when}" for when, value in fall.accuracies.items())
    return f"\n(sharpest fall: {before:,.0f} to {after:,.0f} tokens,\naccuracy {accuracies})"


def _label_collapse(axis: Axes, fall: _Fall, sizes: tuple[int, float, float], look: Look) -> None:
    """Label a collapse with the sizes before and after it, and with the accuracies if those contexts were evaluated."""
    step, before, after = sizes
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
    for x, size, when, side in ((step, before, "before", -1), (step + 1, after, "after", 1)):
        accuracy = fall.accuracies.get(when)
        text = f"{size:,.0f} tokens" + ("" if accuracy is None else f"\naccuracy {accuracy:.1f}")
        axis.annotate(text, (x, size), (4 * side, 4), textcoords="offset points", fontsize=7,
                      ha="right" if side < 0 else "left", color=look.colour, bbox=box)  # fmt: skip
