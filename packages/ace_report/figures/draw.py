"""The one engine of all figures: a drawing says what is shown, and is rendered in a style with one legend below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from ace_report.figures.style import GREY, SCREEN, Look, Sheet, canvas, legend_below, save, styled
from ace_report.tables.cells import Measured, error_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ace_report.tables.results_index import Width

Kind = Literal["line", "curve", "points", "level", "steps", "bars", "marks", "stack"]
"""``line``: joined points with error bars; ``points``: the same, not joined; ``curve``: a line in a band, without a
point for each value; ``level``: one value over the whole width; ``bars`` and ``marks``: upright bars, and short lines
across them; ``stack``: bars to the right from ``low`` on, one in each row ``x``."""
Scale = Callable[["Axes"], object]
"""Changes the axes once everything is drawn."""
_MARKERS = 6
"""Number of markers on a curve."""
_ROOM = 20
"""Number of letters that fit along y."""
_BAR_SHARE = 0.92
"""The part of its room that a bar fills."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One name in a panel: ``y`` over ``x``, with the ends of its error bars or of its band."""

    name: str
    look: Look
    kind: Kind
    x: Sequence[float] = ()
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    width: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Note:
    """A text at a point, moved by ``shift`` (1/72 inch); ``style`` is matplotlib's."""

    text: str
    at: tuple[float, float]
    shift: tuple[float, float] = (0, 0)
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Series on one pair of axes. ``names`` stand along x for its whole numbers, in stacks along y."""

    series: Sequence[Series]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    names: Sequence[str] = ()
    notes: Sequence[Note] = ()
    margins: tuple[float, float] | None = None
    scales: Sequence[Scale] = ()


def series_of_cells(name: str, look: Look, points: Sequence[tuple[float, Measured]], kind: Kind = "line") -> Series:
    """Return a series of cells with their intervals as error bars; cells without a value are gaps."""
    bars = [error_bars(cell) for _, cell in points]
    values = [nan if cell.value is None else cell.value for _, cell in points]
    return Series(
        name=name,
        look=look,
        kind=kind,
        x=[place for place, _ in points],
        y=values,
        low=[value - below for value, (below, _) in zip(values, bars, strict=True)],
        high=[value + above for value, (_, above) in zip(values, bars, strict=True)],
    )


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a figure shows: panels, ``across`` of them in a line (by default all), ``height`` inches high.

    The first line of ``title`` says what it is, the others are warnings and notes. ``more`` says in the legend what is
    not drawn. A ``wide`` figure needs a page of a paper, as all with several panels in a line do. ``finish`` is called
    once the layout is known.
    """

    panels: Sequence[Panel]
    title: str
    height: float
    across: int = 0
    sharey: bool | Literal["row"] = False
    more: str = ""
    wide: bool = False
    finish: Callable[[Figure], None] | None = None

    def width(self, sheet: Sheet) -> Width:
        """Whether it takes a column or a page of a paper."""
        return sheet.width or ("page" if self.wide or len(self.panels) > 1 else "column")


def write_drawings(drawings: Iterable[tuple[Path, Drawing]], sheet: Sheet = SCREEN) -> list[Path]:
    """Write figures by the beginning of their paths, as ``save`` does; raises what ``styled`` and ``save`` raise."""
    with styled(sheet):
        found = [save(render(drawing, sheet), stem, sheet, drawing.title) for stem, drawing in drawings]
    return [file for files in found for file in files]


def render(drawing: Drawing, sheet: Sheet = SCREEN) -> Figure:
    """Draw a figure; panels of a figure in a column stand below each other."""
    column = sheet.for_paper and drawing.width(sheet) == "column"
    across = 1 if column else drawing.across or len(drawing.panels)
    lines = -(-len(drawing.panels) // across)
    height = drawing.height * (lines if column else 1) * (0.85 if sheet.for_paper else 1)
    figure, axes = canvas(lines, across, (sheet.inches(drawing.width(sheet)), height), sharey=drawing.sharey)
    for unused in axes[len(drawing.panels) :]:
        unused.remove()
    axes = axes[: len(drawing.panels)]
    for axis, panel in zip(axes, drawing.panels, strict=True):
        _draw_panel(axis, panel)
        axis.set_ylabel(fill(panel.y_label, _ROOM))
    figure.suptitle(sheet.title(drawing.title), wrap=True, **sheet.title_style)
    legend_below(figure, axes, drawing.more)
    if drawing.finish:
        figure.draw_without_rendering()  # fixes the layout
        drawing.finish(figure)
    return figure


def _draw_panel(axis: Axes, panel: Panel) -> None:
    for series in panel.series:
        _DRAW[series.kind](axis, series)
    for note in panel.notes:
        axis.annotate(note.text, note.at, note.shift, textcoords="offset points", **{"fontsize": 7, **note.style})
    stacked = any(series.kind == "stack" for series in panel.series)
    if panel.names and stacked:
        axis.set_yticks(range(len(panel.names)), panel.names)
        axis.grid(visible=False, axis="y")
    elif panel.names:
        axis.set_xticks(range(len(panel.names)), panel.names)
    axis.set_title(panel.title)
    axis.set_xlabel(panel.x_label)
    if panel.margins:
        axis.margins(*panel.margins)
    for scale in panel.scales:
        scale(axis)


def _line(axis: Axes, series: Series) -> None:
    joined = series.kind == "line"
    axis.errorbar(
        series.x,
        series.y,
        yerr=_errors(series),
        label=series.name,
        color=series.look.colour,
        linestyle=series.look.line if joined else "",
        linewidth=series.look.width,
        marker=series.look.marker,
        markersize=5 if joined else 4,
        elinewidth=0.8 if joined else 0.6,
        capsize=2 if joined else 1.2,
    )


def _curve(axis: Axes, series: Series) -> None:
    look, every = series.look, max(1, len(series.y) // _MARKERS)
    marker = look.marker if series.low else None
    axis.plot(series.x, series.y, label=series.name, color=look.colour, linestyle=look.line, linewidth=look.width,
              marker=marker, markersize=2.8 * look.width, markevery=every)  # fmt: skip
    if series.low != series.high:
        axis.fill_between(series.x, series.low, series.high, color=look.colour, alpha=0.15, linewidth=0)


def _level(axis: Axes, series: Series) -> None:
    axis.axhline(series.y[0], color=series.look.colour, linestyle=":", linewidth=1.0, label=series.name)


def _steps(axis: Axes, series: Series) -> None:
    axis.plot(series.x, series.y, drawstyle="steps-post", color=series.look.colour, linewidth=0.8, linestyle="--",
              zorder=1, label=series.name)  # fmt: skip


def _bars(axis: Axes, series: Series) -> None:
    for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True):
        if isnan(y):
            axis.bar(x, 0, series.width, label=series.name, color=series.look.colour, hatch=series.look.hatch)
            axis.annotate("n/a", (x, 0), ha="center", va="bottom", fontsize=6, color=GREY, rotation=90)
            continue
        error = None if low == high else [[y - low], [high - y]]
        axis.bar(x, y, _BAR_SHARE * series.width, yerr=error, edgecolor="white", error_kw={"linewidth": 0.8},
                 capsize=2, label=series.name, color=series.look.colour, hatch=series.look.hatch)  # fmt: skip
        axis.annotate(f"{y:.1f}", (x, high), (0, 2), textcoords="offset points", ha="center", fontsize=6)


def _marks(axis: Axes, series: Series) -> None:
    half = series.width / 2
    for x, y in zip(series.x, series.y, strict=True):
        axis.hlines(y, x - half, x + half, color=series.look.colour, label=series.name, linewidth=1.2)


def _stack(axis: Axes, series: Series) -> None:
    axis.barh(series.x, series.y, left=series.low, label=series.name, color=series.look.colour,
              hatch=series.look.hatch, edgecolor="white", height=0.7)  # fmt: skip


_DRAW: dict[Kind, Callable[[Axes, Series], None]] = {
    "line": _line,
    "points": _line,
    "curve": _curve,
    "level": _level,
    "steps": _steps,
    "bars": _bars,
    "marks": _marks,
    "stack": _stack,
}


def _errors(series: Series) -> list[list[float]] | None:
    if not series.low:
        return None
    below = [y - low for y, low in zip(series.y, series.low, strict=True)]
    return [below, [high - y for y, high in zip(series.y, series.high, strict=True)]]
