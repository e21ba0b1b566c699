"""Figures of costs: score against what adaptation cost, and who spent it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ace_bench.core.types import Stage
from ace_bench.report.figures.series import Series, Shown
from ace_bench.report.figures.style import canvas, legend_below, looks, percent_axis
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Measured, Place, mean_of, measure, reach
from ace_bench.report.tables.grids import column_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_THOUSAND, _MILLION = 1e3, 1e6
_PARTS = (
    *("adapt.generator", "adapt.reflector", "adapt.curator", "adapt.proposer"),
    *("evaluate.generator", "evaluate.judge", "adapt.judge"),
)
"""Who is asked in most runs, by stage."""


def score_against_cost(shown: Shown) -> Figure | None:
    """Headline score over what adaptation cost, for the runs of one task; ``None`` where no adaptation's is known.

    The cost is in dollars, or in tokens where any dollars are unknown or nothing was charged.
    """
    dollars = {one.name: mean_of([run.value("usd.adapt") for run in one.runs]) for one in shown.series}
    charged = None not in dollars.values() and any(dollars.values())
    costs = dollars if charged else {one.name: _tokens(one.runs) for one in shown.series}
    if not any(costs.values()):
        return None
    figure, (axis,) = canvas(1, 1, 3.0)
    for one in shown.series:
        cost, score, look = costs[one.name], _score(one), shown.looks[one.name]
        if cost is None or score.value is None:
            continue
        error = [[side] for side in reach(score)]
        axis.errorbar(cost, score.value, yerr=error, label=one.name, color=look.colour, marker=look.marker,
                      linestyle="", capsize=2)  # fmt: skip
    # Linear up to the least cost, so that what costs nothing has its place, too.
    axis.set_xscale("symlog", linthresh=min(cost for cost in costs.values() if cost))
    axis.set(xlabel="cost of adaptation (dollars)" if charged else "tokens of adaptation, prompts and replies")
    axis.set_ylabel(f"{column_name(shown.series[0].runs[0].metrics['headline']['metric'])} on the test split (%)")
    axis.margins(x=0.08, y=0.15)
    percent_axis(axis)
    figure.suptitle(shown.title)
    legend_below(figure, [axis])
    return figure


def cost_breakdown(shown: Shown) -> Figure | None:
    """Tokens by role and stage, for the runs of one task; ``None`` where nothing is known."""
    kept = shown.series
    found = {part for one in kept for run in one.runs for part in _parts(run)}
    drawn = looks([*_PARTS, *sorted(found.difference(_PARTS))])  # the same for all tasks, whoever was asked
    parts = [part for part in drawn if part in found]
    spent = {
        what: {
            part: [mean_of([run.value(f"spent.{part}.all.{what}") for run in one.runs]) for one in kept]
            for part in parts
        }
        for what in ("in", "out")
    }
    if not parts or all(value is None for part in spent["in"].values() for value in part):
        return None
    figure, axes = canvas(1, 2, 1.5 + 0.24 * len(kept), sharey=True)
    for axis, (what, by_part) in zip(axes, spent.items(), strict=True):
        left = [0.0] * len(kept)
        unit, scale = _unit([sum(value or 0.0 for value in line) for line in zip(*by_part.values(), strict=True)])
        for part, values in by_part.items():
            look, label = drawn[part], part.replace(".", ": ")
            widths = [(value or 0.0) / scale for value in values]
            axis.barh(range(len(kept)), widths, left=left, label=label, color=look.colour, hatch=look.hatch,
                      edgecolor="white", height=0.7)  # fmt: skip
            left = [start + width for start, width in zip(left, widths, strict=True)]
        unknown = [place for place in range(len(kept)) if any(values[place] is None for values in by_part.values())]
        for place in unknown:
            axis.annotate("n/a", (left[place], place), (2, 0), textcoords="offset points", va="center", fontsize=7)
        axis.set_yticks(range(len(kept)), [one.name for one in kept])
        axis.set_xlabel(f"{'prompt' if what == 'in' else 'reply'} tokens{unit}")
        axis.grid(visible=False, axis="y")
    axes[0].invert_yaxis()
    figure.suptitle(shown.title)
    legend_below(figure, axes)
    return figure


def _unit(totals: Sequence[float]) -> tuple[str, float]:
    """Return the name and the size of a unit in which the most of some numbers of tokens is read well."""
    most = max(totals, default=0.0)
    if most < 10 * _THOUSAND:
        return "", 1.0
    return (" (thousands)", _THOUSAND) if most < 10 * _MILLION else (" (millions)", _MILLION)


def _tokens(runs: Sequence[RunSummary]) -> float | None:
    sides = [mean_of([run.value(f"tokens.adapt.{side}") for run in runs]) for side in ("in", "out")]
    return None if None in sides else sum(side or 0.0 for side in sides)


def _score(series: Series) -> Measured:
    metric = series.runs[0].metrics["headline"]["metric"]
    return measure(Place(row=series.name, column=metric, unit="percent"), None, metric, series.runs)


def _parts(run: RunSummary) -> list[str]:
    """``stage.role`` of all calls."""
    return [f"{stage}.{role}" for stage in Stage for role in run.metrics["calls"][stage]]
