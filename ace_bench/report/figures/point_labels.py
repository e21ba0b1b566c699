"""Places the names of points beside them so that they cover neither points nor each other.

In three panels of 16 points this covers at most one marker; adjustText 1.4 covered 4 to 32, and took 14 times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DIRECTIONS = (0, 8, 2, 14, 6, 10, 4, 12, 1, 15, 7, 9, 3, 13, 5, 11)
"""Sixteenths of a circle, in the order in which they are tried: right, left, then up and down."""
_DISTANCES = (5, 10, 16, 23, 31, 40, 50)
"""Points (1/72 inch) from the middle of the marker to the text."""
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


@dataclass(frozen=True)
class Box:
    """A rectangle, in points of the figure."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Box:
        """Return the rectangle with this middle."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def overlap(self, other: Box) -> float:
        """Return the common area."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return width * height if width > 0 and height > 0 else 0.0

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.top - self.bottom)


def place_labels(axis: Axes, labels: Sequence[PointLabel], steps: Sequence[PointLabel] = ()) -> list[Box]:
    """Write the names, the first ones closest to their points; returns the room they take.

    ``steps`` are the points that a line joins, first across and then up or down. The figure must have been drawn: its
    layout and the limits of the axis may not change any more.
    """
    scale = 72 / axis.figure.dpi
    frame = Box(*(scale * edge for edge in axis.get_window_extent().extents))
    obstacles = _Obstacles(frame)
    places = []
    for label in labels:
        ends = [(label.x, y) for y in (label.low, label.y, label.high)]
        (_, low), (x, y), (_, high) = scale * axis.transData.transform(ends)
        places.append((x, y))
        obstacles.markers.append(Box.around(x, y, 2 * _MARKER, 2 * _MARKER))
        obstacles.lines.append(Box(x - _BAR, low, x + _BAR, high))
    corners = [scale * axis.transData.transform((step.x, step.y)) for step in steps]
    for (x, y), (right, top) in pairwise(corners):
        obstacles.lines += [Box(x, y - _BAR, right, y + _BAR), Box(right - _BAR, y, right + _BAR, top)]
    for label, (x, y) in zip(labels, places, strict=True):
        weight = "bold" if label.bold else "normal"
        text = axis.annotate(label.text, (label.x, label.y), (0, 0), textcoords="offset points", ha="center",
                             va="center", fontsize=_SIZE, color=label.colour, fontweight=weight)  # fmt: skip
        text.set_in_layout(False)
        extent = text.get_window_extent()
        box = obstacles.best(x, y, scale * extent.width, scale * extent.height)
        obstacles.texts.append(box)
        text.set_position(((box.left + box.right) / 2 - x, (box.bottom + box.top) / 2 - y))
        edge = min(max(x, box.left), box.right) - x, min(max(y, box.bottom), box.top) - y
        if hypot(*edge) > _LINE_FROM:
            style = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
            line = axis.annotate("", (label.x, label.y), edge, textcoords="offset points", arrowprops=style)
            line.set_in_layout(False)
    return obstacles.texts


class _Obstacles:
    """What a text should not cover, inside the frame of an axis."""

    def __init__(self, frame: Box) -> None:
        self.markers: list[Box] = []
        self.lines: list[Box] = []
        self.texts: list[Box] = []
        self._frame = frame

    def best(self, x: float, y: float, width: float, height: float) -> Box:
        """Return the place of a text near a point that covers least; of equal ones the first."""
        found: list[tuple[float, Box]] = []
        for distance, sixteenth in product(_DISTANCES, _DIRECTIONS):
            across, up = cos(sixteenth * pi / 8), sin(sixteenth * pi / 8)
            middle = x + across * (distance + width / 2), y + up * (distance + height / 2)
            box = Box.around(*middle, width, height)
            found.append((distance + self._penalty(box), box))
        return min(found, key=lambda one: one[0])[1]

    def _penalty(self, box: Box) -> float:
        penalty = _OUTSIDE * (box.area - box.overlap(self._frame))
        for weight, others in ((_ON_TEXT, self.texts), (_ON_MARKER, self.markers), (_ON_LINE, self.lines)):
            penalty += weight * sum(box.overlap(other) for other in others)
        return penalty
