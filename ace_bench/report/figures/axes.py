"""What panels of several figures share: lines of cells, curves and levels, labels, and scales of axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, nan
from textwrap import fill
from typing import TYPE_CHECKING

from ace_bench.report.figures.style import Look
from ace_bench.report.tables.cells import Measured

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.ticker import Formatter

_MARKERS = 6
"""Number of markers on a curve."""
_LETTERS = 20
"""Number of letters that fit along y."""
_MIN_Y_RANGE = 10.0
"""Smallest y-range of scores, in percentage points."""
_LOG_SPAN, _NARROW, _MAX_TICKS, _LARGE = 30, 5, 8, 10_000


def label_axes(axis: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Set the labels of both axes and the title."""
    axis.set_xlabel(x)
    axis.set_ylabel(fill(y, _LETTERS))
    axis.set_title(title)


def draw_cells(
    axis: Axes, name: str, look: Look, points: Sequence[tuple[float, Measured]], *, joined: bool = True
) -> None:
    """Draw cells over their places along x, with their intervals as error bars. Cells without a value are gaps."""
    axis.errorbar(
        [x for x, _ in points],
        [nan if cell.value is None else cell.value for _, cell in points],
        yerr=[*zip(*(error_bars(cell) for _, cell in points), strict=True)] or None,
        label=name,
        color=look.colour,
        linestyle=look.line if joined else "",
        linewidth=look.width,
        marker=look.marker,
        markersize=5 if joined else 4,
        elinewidth=0.8 if joined else 0.6,
        capsize=2 if joined else 1.2,
    )


def error_bars(cell: Measured) -> tuple[float, float]:
    """Return the distances from a cell's value to the bounds of its interval, or 0 without an interval."""
    if cell.value is None or cell.interval is None:
        return (0.0, 0.0)
    return (max(0.0, cell.value - cell.interval.low), max(0.0, cell.interval.high - cell.value))


def draw_curve(axis: Axes, name: str, look: Look, curve: pd.DataFrame) -> None:
    """Draw a curve over the steps of its index, in a band from ``low`` to ``high`` if its seeds differ."""
    axis.plot(curve.index, curve["mean"], label=name, color=look.colour, linestyle=look.line, linewidth=look.width,
              marker=look.marker, markersize=2.8 * look.width, markevery=max(1, len(curve) // _MARKERS))  # fmt: skip
    if not curve["low"].equals(curve["high"]):
        axis.fill_between(curve.index, curve["low"], curve["high"], color=look.colour, alpha=0.15, linewidth=0)


def draw_level(axis: Axes, name: str, look: Look, value: float) -> None:
    """Draw one value over the whole width."""
    axis.axhline(value, color=look.colour, linestyle=":", linewidth=1.0, label=name)


def percent_axis(axis: Axes) -> None:
    """Enforce a minimum y-range, so that noise is not exaggerated where all scores are close."""
    low, high = axis.get_ylim()
    if high - low < _MIN_Y_RANGE:
        bottom = max((low + high - _MIN_Y_RANGE) / 2, -0.05 * _MIN_Y_RANGE)
        axis.set_ylim(bottom, bottom + _MIN_Y_RANGE)


def count_axis(axis: Axes) -> None:
    """Tick whole numbers along x."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))


def number_axis(axis: Axes, values: Sequence[float]) -> None:
    """Tick the values of x, sorted, with a logarithmic scale if they span more than a factor of 30."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if _spans_much(values):
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    interval = max(1, ceil(len(values) / _MAX_TICKS))
    axis.xaxis.set_major_locator(FixedLocator(list(values[::interval])))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _spans_much(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LOG_SPAN


def cost_axis(axis: Axes, smallest: float) -> None:
    """Scale x logarithmically, but linearly up to the smallest cost, so that zero can be shown. Label 1, 2, 5, 10."""
    from matplotlib.ticker import NullLocator, SymmetricalLogLocator

    axis.set_xscale("symlog", linthresh=smallest)
    high = axis.get_xlim()[1]
    subs = [1.0, 2.0, 5.0] if high / smallest < _LOG_SPAN else [1.0]
    axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=smallest, subs=subs))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(_amounts(high))


def log_axis(axis: Axes) -> None:
    """Scale x logarithmically, without room for zero. Label 1, 2, 5, 10."""
    axis.set_xscale("log")
    _tick_decades(axis.xaxis, axis.get_xlim())


def amount_axis(axis: Axes, values: Sequence[float]) -> None:
    """Scale y logarithmically if its values span more than a factor of 30. Write large ones with a unit: 50k, 1.5M."""
    if _spans_much(values):
        axis.set_yscale("log")
        _tick_decades(axis.yaxis, values)
    axis.yaxis.set_major_formatter(_amounts(max(values)))


def _tick_decades(axis: Axis, values: Sequence[float]) -> None:
    """Label 1, 2, 5, 10 of few decades, 1, 10 of many, and even steps where the span holds too few of these."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    span = max(values) / min(values)
    decades = LogLocator(base=10, subs=(1.0, 2.0, 5.0) if span < _LOG_SPAN**2 else (1.0,))
    axis.set_major_locator(MaxNLocator(nbins=4) if span < _NARROW else decades)
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(_amounts(max(values)))


def _amounts(largest: float) -> Formatter:
    from matplotlib.ticker import EngFormatter, FuncFormatter

    return EngFormatter(sep="") if largest >= _LARGE else FuncFormatter(lambda value, _: f"{value:,.10g}")


def size_axis(axis: Axes) -> None:
    """Start y just below 0, so that markers at 0 are visible, and reach at least 1."""
    top = max(1.0, axis.get_ylim()[1])
    axis.set_ylim(-0.03 * top, top)
