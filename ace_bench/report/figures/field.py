"""The figure of an experiment that lists methods: score against the cost of a run, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ace_bench.report.figures.point_labels import PointLabel, place_labels
from ace_bench.report.figures.style import GREY, Look, canvas, legend_below, log_axis, looks, percent_axis
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.cells import Measured, error_bars, mean_of
from ace_bench.report.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODES = ("offline", "online")
_LINE, _FRAME = 1.9, 1.2
"""Inches of height of a line of panels, and of title and legend together."""
_BAR_ALPHA = 0.45
"""Opacity of error bars, so that names on them can be read."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A row of the table in one panel: ``kind`` is what its look shows, ``cost`` is in dollars or tokens."""

    name: str
    kind: str
    cost: float
    cell: Measured

    @property
    def score(self) -> float:
        """In percent."""
        return self.cell.value or 0.0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One task offline or online; the base row is in both."""

    column: str
    mode: str
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Panels:
    """What the figure shows: costs in dollars, or in tokens if dollars are unknown or zero anywhere.

    ``unknown`` names the finished rows whose cost is unknown; they are not drawn.
    """

    in_dollars: bool
    panels: Sequence[Panel]
    unknown: Sequence[str]


def panels_of(table: Table) -> Panels:
    """Gather the finished cells of a table, by task and mode."""
    finished = [cell for cell in table.measured if cell.value is not None]
    in_dollars = all(_dollars(cell.runs) for cell in finished)
    cost = _dollars if in_dollars else _tokens
    panels, unknown = [], dict[str, None]()
    for column in table.columns:
        found: dict[str, list[Point]] = {mode: [] for mode in _MODES}
        for row, heading in table.rows.items():
            cell, labels = table.cells[row][column], heading.fields["labels"]
            name, stage = heading.texts[0], heading.fields["adaptation"]
            if cell.value is None:
                continue
            spent = cost(cell.runs)
            if not spent:
                unknown[name] = None
                continue
            kind = f"labels {labels}" if labels else name
            for mode in [stage] if stage else _MODES:
                found[mode].append(Point(name=name, kind=kind, cost=spent, cell=cell))
        if any(found.values()):
            panels += [Panel(column=column, mode=mode, points=points) for mode, points in found.items()]
    return Panels(in_dollars=in_dollars, panels=panels, unknown=list(unknown))


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats in score without costing more, or in cost without scoring less.

    They are sorted by cost. Means alone count, not their intervals.
    """
    front = [one for one in points if not any(_beats(other, one) for other in points)]
    return sorted(front, key=lambda point: point.cost)


def score_by_cost(table: Table, title: str) -> Figure | None:
    """Draw a line of panels for each task, offline beside online; ``None`` without finished runs."""
    found = panels_of(table)
    if not found.panels:
        return None
    lines = len(found.panels) // len(_MODES)
    figure, axes = canvas(lines, len(_MODES), _FRAME + _LINE * lines, sharey="row")
    kinds = looks(list(dict.fromkeys(point.kind for panel in found.panels for point in panel.points)))
    cost = "dollars" if found.in_dollars else "tokens, prompts and replies"
    for axis, panel in zip(axes, found.panels, strict=True):
        _draw(axis, panel, kinds)
        axis.set_title(f"{table.columns[panel.column].title}, {panel.mode}")
    for axis in axes[-len(_MODES) :]:
        axis.set_xlabel(f"cost of a run ({cost})")
    for axis in axes[:: len(_MODES)]:
        axis.set_ylabel("score (%)")
    figure.suptitle("\n".join(filter(None, (title, _note(found)))), wrap=True)
    legend_below(figure, axes)
    figure.draw_without_rendering()  # fixes the layout, on which the places of the names depend
    for axis, panel in zip(axes, found.panels, strict=True):
        labels = _labels(panel, kinds)
        place_labels(axis, labels, [label for label in labels if label.bold])
    return figure


def _draw(axis: Axes, panel: Panel, kinds: Mapping[str, Look]) -> None:
    from matplotlib.colors import to_rgba

    front = pareto_front(panel.points)
    for point in panel.points:
        look = kinds[point.kind]
        axis.errorbar(point.cost, point.score, yerr=[[side] for side in error_bars(point.cell)], label=point.kind,
                      color=look.colour, ecolor=to_rgba(look.colour, _BAR_ALPHA), marker=look.marker, markersize=4,
                      linestyle="", elinewidth=0.6, capsize=1.2)  # fmt: skip
    axis.plot([point.cost for point in front], [point.score for point in front], drawstyle="steps-post", color=GREY,
              linewidth=0.8, linestyle="--", zorder=1, label="Pareto front of the means")  # fmt: skip
    axis.margins(x=0.12, y=0.1)
    log_axis(axis)
    percent_axis(axis)


def _labels(panel: Panel, kinds: Mapping[str, Look]) -> list[PointLabel]:
    """Return the names of the points, those on the front first and in bold."""
    front = pareto_front(panel.points)
    ordered = [*front, *(point for point in panel.points if point not in front)]
    labels = []
    for point in ordered:
        below, above = error_bars(point.cell)
        labels.append(
            PointLabel(
                text=point.name,
                x=point.cost,
                y=point.score,
                low=point.score - below,
                high=point.score + above,
                colour=kinds[point.kind].colour,
                bold=point in front,
            )
        )
    return labels


def _note(found: Panels) -> str:
    notes = ["bars: 95% intervals; bold: on the front"]
    if not found.in_dollars:
        notes.append("costs are in tokens, because the dollars of some runs are unknown or zero")
    if found.unknown:
        notes.append(f"not drawn, since their tokens are unknown: {', '.join(found.unknown)}")
    return "; ".join(notes)


def _beats(one: Point, other: Point) -> bool:
    no_worse = one.cost <= other.cost and one.score >= other.score
    return no_worse and (one.cost < other.cost or one.score > other.score)


def _dollars(runs: Sequence[RunSummary]) -> float | None:
    return mean_of([run.value("usd.total") for run in runs])


def _tokens(runs: Sequence[RunSummary]) -> float | None:
    sides = [mean_of([run.value(f"tokens.total.{side}") for run in runs]) for side in ("in", "out")]
    return None if None in sides else sum(side or 0.0 for side in sides)
