"""The figure of an experiment that lists methods: score against the cost of a query, with the Pareto front."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise, product
from math import cos, hypot, pi, sin
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from ace_bench.core.statistics import Array
from ace_bench.report.figures.axes import draw_cells, error_bars, label_axes, log_axis, percent_axis
from ace_bench.report.figures.style import GREY, SCREEN, Look, Sheet, add_legend, looks, new_figure
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.field import Group, Member, dollars, groups_of, on_front, tokens, with_certainty
from ace_bench.report.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_ACROSS = 2
_LINE, _FRAME = 1.9, 1.2
"""Inches of height of a line of panels, and of title and legend together."""
_LETTERS = 100
"""In a line of the title."""
_DIRECTIONS = (0, 8, 2, 14, 6, 10, 4, 12, 1, 15, 7, 9, 3, 13, 5, 11)
"""Sixteenths of a circle, in the order in which they are tried: right, left, then up and down."""
_DISTANCES = (5, 10, 16, 23, 31, 40, 50)
"""Points (1/72 inch) from the middle of the marker to the text."""
_TRIED = np.array([(far, cos(turn * pi / 8), sin(turn * pi / 8)) for far, turn in product(_DISTANCES, _DIRECTIONS)])
_MARKER, _BAR = 3.5, 0.5
"""Half the width of a marker and of a line, in points."""
_LINE_FROM = 8
"""A text that is farther from its point gets a line to it."""
_OUTSIDE, _ON_TEXT, _ON_MARKER, _ON_LINE = 20.0, 6.0, 6.0, 3.0
"""Penalties for a square point of overlap, against 1 for each point of distance."""
_SIZE = 5.5


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


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats in score without costing more, or in cost without scoring less.

    They are sorted by cost. Only means are compared, without their intervals.
    """
    stays = on_front(np.array([point.cost for point in points]), np.array([point.score for point in points]))
    return sorted(compress(points, stays), key=lambda point: point.cost)


def draw_fields(table: Table, title: str, sheet: Sheet = SCREEN) -> Iterator[tuple[str, Figure]]:
    """Draw a figure for each task and scaffold, with a panel for each group of at least two finished methods.

    Costs are in dollars, or in tokens if dollars are unknown. Methods whose cost is unknown or zero are named in the
    title, not drawn.
    """
    runs = [run for cell in table.measured for run in cell.runs]
    in_dollars = bool(runs) and all(dollars(run) for run in runs)
    parts: dict[str, dict[str, list[Point]]] = {}
    unknown = dict[str, None]()
    for group in groups_of(table, dollars if in_dollars else tokens):
        members = with_certainty(group.members)
        unknown |= dict.fromkeys(member.name for member in members if not member.cost)
        if points := [_point(member, cost, group) for member in members if (cost := member.cost)]:
            heading = f"{table.columns[group.column].title}\n{group.title}"
            parts.setdefault(f"{group.column}_{group.scaffold}", {})[heading] = points
    points_of_all = [point for panels in parts.values() for points in panels.values() for point in points]
    kinds = looks(list(dict.fromkeys(point.kind for point in points_of_all)))
    notes = ["bars: 95% intervals; bold: on the front; percentages: bootstrap draws in which it is on the front"]
    if not in_dollars:
        notes.append("costs are in tokens, because the dollars of some runs are unknown or zero")
    if unknown:
        notes.append(f"not drawn, since their tokens are unknown: {', '.join(unknown)}")
    full_title = "\n".join(fill(line, _LETTERS) for line in (*title.split("\n"), "; ".join(notes)))
    for part, panels in parts.items():
        height = _FRAME + _LINE * -(-len(panels) // _ACROSS)
        figure, axes = new_figure(full_title, sheet, len(panels), height=height, across=_ACROSS, sharey="row")
        for index, (axis, (heading, points)) in enumerate(zip(axes, panels.items(), strict=True)):
            x_label = f"Cost of a query ({'dollars' if in_dollars else 'tokens'})"
            last, first = index >= len(panels) - _ACROSS, index % _ACROSS == 0
            label_axes(axis, x_label * last, "Score (%)" * first, heading)
            _draw_points(axis, points, kinds)
        add_legend(figure)
        figure.draw_without_rendering()  # fixes the layout, by which the names are placed
        for axis, points in zip(axes, panels.values(), strict=True):
            place_names(axis, points, kinds)
        yield part, figure


def _point(member: Member, cost: float, group: Group) -> Point:
    kind = "retries by verdicts" if group.retries else f"labels {group.labels}" if member.adapts else member.name
    share = "" if member.on_front is None else f" {member.on_front:.0%}"
    return Point(name=member.name + share, kind=kind, cost=cost, cell=member.cell)


def _draw_points(axis: Axes, points: Sequence[Point], kinds: Mapping[str, Look]) -> None:
    """Draw the points of a panel by kind, and the Pareto front of their means."""
    for kind, look in kinds.items():
        if cells := [(point.cost, point.cell) for point in points if point.kind == kind]:
            draw_cells(axis, kind, look, cells, joined=False)
    front = pareto_front(points)
    axis.plot([point.cost for point in front], [point.score for point in front], drawstyle="steps-post", color=GREY,
              linewidth=0.8, linestyle="--", zorder=1, label="Pareto front of the means")  # fmt: skip
    axis.margins(0.12, 0.1)
    log_axis(axis)
    percent_axis(axis)


def place_names(axis: Axes, points: Sequence[Point], kinds: Mapping[str, Look]) -> list[Bbox]:
    """Write the names, the front's first and in bold. Returns the room they take, in points of the figure.

    They cover neither points nor each other: in three panels of 16 points at most one marker, where adjustText 1.4
    covered 4 to 32 and took 14 times as long. Draw the figure first, as its layout and the limits of the axis must not
    change afterwards.
    """
    from matplotlib.transforms import Bbox

    scale = 72 / axis.figure.dpi
    frame = scale * np.ravel(axis.get_window_extent().get_points())
    front = pareto_front(points)
    ordered = [*front, *(point for point in points if point not in front)]
    obstacles, places, boxes = list[tuple[float, ...]](), list[Array](), []
    for point in ordered:
        below, above = error_bars(point.cell)
        ends = [(point.cost, y) for y in (point.score - below, point.score, point.score + above)]
        (_, low), (x, y), (_, high) = scale * axis.transData.transform(ends)
        places.append(np.array([x, y]))
        obstacles.append((_ON_MARKER, x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER))
        obstacles.append((_ON_LINE, x - _BAR, low, x + _BAR, high))
    for (x, y), (right, top) in pairwise(places[: len(front)]):  # the front goes across, then up
        obstacles.append((_ON_LINE, x, y - _BAR, right, y + _BAR))
        obstacles.append((_ON_LINE, right - _BAR, y, right + _BAR, top))
    for point, position in zip(ordered, places, strict=True):
        point_position, colour = (point.cost, point.score), kinds[point.kind].colour
        weight = "bold" if point in front else "normal"
        text = axis.annotate(point.name, point_position, (0, 0), textcoords="offset points", ha="center",
                             va="center", fontsize=_SIZE, color=colour, fontweight=weight)  # fmt: skip
        text.set_in_layout(False)
        box = _best_place(position, scale * np.array(text.get_window_extent().size), frame, np.array(obstacles))
        obstacles.append((_ON_TEXT, *box))
        boxes.append(Bbox.from_extents(*box))
        dx, dy = (box[:2] + box[2:]) / 2 - position
        text.set_position((dx, dy))
        dx, dy = np.clip(position, box[:2], box[2:]) - position
        if hypot(dx, dy) > _LINE_FROM:
            style = {"arrowstyle": "-", "color": colour, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
            line = axis.annotate("", point_position, (dx, dy), textcoords="offset points", arrowprops=style)
            line.set_in_layout(False)
    return boxes


def _best_place(point: Array, size: Array, frame: Array, obstacles: Array) -> Array:
    """Return the left, bottom, right and top of a text near a point that covers least.

    The first of equal ones is returned.
    """
    distances, directions = _TRIED[:, :1], _TRIED[:, 1:]
    middles = point + directions * (distances + size / 2)
    boxes = np.hstack([middles - size / 2, middles + size / 2])
    outside = size.prod() - _overlaps(boxes, frame[None])[:, 0]
    penalties = distances[:, 0] + _OUTSIDE * outside + _overlaps(boxes, obstacles[:, 1:]) @ obstacles[:, 0]
    best: Array = boxes[np.argmin(penalties)]
    return best


def _overlaps(boxes: Array, obstacles: Array) -> Array:
    """Return the common area of each box with each of the others."""
    ends = np.minimum(boxes[:, None, 2:], obstacles[:, 2:])
    sides: Array = np.clip(ends - np.maximum(boxes[:, None, :2], obstacles[:, :2]), 0, None)
    areas: Array = sides.prod(axis=2)
    return areas
