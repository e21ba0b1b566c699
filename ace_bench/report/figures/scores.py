"""Figures of scores: the bars of figure 1, and how sensitive a method is to a setting (tables 16-21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import nan
from typing import TYPE_CHECKING, Any

from ace_bench.report.experiments import Experiments
from ace_bench.report.figures.style import GREY, canvas, legend_below, looks, percent_axis
from ace_bench.report.tables.cells import Measured, error_bars, setting_warning
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.paper_tables import paper_table
from ace_bench.report.tables.variants import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BARS = "figure_1"
_PAPER = "paper"


def overall_bars(experiments: Experiments, selection: Selection, title: str, *, with_paper: bool) -> Figure | None:
    """Bars of methods by task (paper, figure 1); ``None`` without finished runs.

    The paper's numbers are drawn beside those measured in its setting, and with ``with_paper`` beside all.
    """
    cells = bar_cells(experiments, selection)
    if not cells:
        return None
    figure, (axis,) = canvas(1, 1, 2.6)
    names = list(dict.fromkeys(method for line in cells.values() for method in line))
    width = 0.8 / len(names)
    for place, (method, look) in enumerate(looks(names).items()):
        for group, line in enumerate(cells.values()):
            x = group + (place - (len(names) - 1) / 2) * width
            _bar(axis, x, width, line[method], label=method, color=look.colour, hatch=look.hatch)
            published = _published(line[method], selection, with_paper=with_paper)
            if published is not None:
                axis.hlines(published, x - width / 2, x + width / 2, color="black", label=_PAPER, linewidth=1.2)
    axis.set_xticks(range(len(cells)), list(cells))
    axis.set(ylabel="score (%)", xlim=(-0.5, len(cells) - 0.5))
    axis.grid(visible=False, axis="x")
    axis.margins(y=0.12)
    figure.suptitle(title + _warning([cell for line in cells.values() for cell in line.values()], selection), wrap=True)
    legend_below(figure, [axis])
    return figure


def bar_cells(experiments: Experiments, selection: Selection) -> dict[str, dict[str, Measured]]:
    """Return the cells behind the bars by task and method; tasks without a score are left out."""
    table = cache(lambda name: paper_table(name, experiments, selection))
    cells: dict[str, dict[str, Measured]] = {}
    for task, methods in experiments.by_name[_BARS].bars.items():
        for method, ref in methods.items():
            name, row, column = ref.split("/")
            cells.setdefault(task, {})[method] = table(name).cells[row][column]
    return {task: line for task, line in cells.items() if any(cell.value is not None for cell in line.values())}


def sensitivity(
    name: str, experiments: Experiments, selection: Selection, title: str, *, with_paper: bool
) -> Figure | None:
    """Scores by the setting that a table varies, the base as a line; ``None`` if fewer than two rows have runs."""
    table = paper_table(name, experiments, selection)
    base, settings = table.base, {row: one.settings for row, one in experiments.paper.table(name).rows.items()}
    rows = {row: line for row, line in table.cells.items() if row != base}
    columns = [column for column in table.columns if any(line[column].runs for line in rows.values())]
    if not columns or sum(any(line[column].runs for column in columns) for line in rows.values()) < 2:
        return None
    figure, axes = canvas(1, len(columns), 2.6, sharey=True)
    names = [setting_name(row, settings) for row in rows]
    drawn = looks(["ours", _PAPER])
    for axis, column in zip(axes, columns, strict=True):
        found = [(place, line[column]) for place, line in enumerate(rows.values()) if line[column].value is not None]
        _points(axis, found, drawn["ours"].colour)
        published = [_published(line[column], selection, with_paper=with_paper) for line in rows.values()]
        if any(value is not None for value in published):
            values = [nan if value is None else value for value in published]
            axis.plot(range(len(rows)), values, label=_PAPER, color="black", linestyle=":", marker="s", mfc="white")
        level = table.cells[base][column].value
        if level is not None:
            axis.axhline(level, color=GREY, linestyle="--", label=table.rows[base].texts[0])
        axis.set_xticks(range(len(names)), names)
        axis.set(ylabel=f"{column_name(column)} (%)", xlabel=_varied(settings) or experiments.by_name[name].title)
        axis.set_xlim(-0.4, len(rows) - 0.6)
        axis.margins(y=0.15)
        percent_axis(axis)
    figure.suptitle(title + _warning(table.measured, selection), wrap=True)
    legend_below(figure, axes)
    return figure


def setting_name(row: str, settings: Mapping[str, Mapping[str, object]]) -> str:
    """Return the value of the setting that a row varies, or the row's name if the paper prints none."""
    return ", ".join(str(value) for value in settings.get(row, {}).values()) or row.replace("_", " ")


def _published(cell: Measured, selection: Selection, *, with_paper: bool) -> float | None:
    """Return the paper's number for a cell, if it should be shown."""
    fair = selection.variant.comparable and not cell.deviations
    return cell.place.paper.value if cell.place.paper and (with_paper or fair) else None


def _warning(cells: Iterable[Measured], selection: Selection) -> str:
    return setting_warning(cells).replace(" ", "\n", 1) if selection.variant.comparable else ""


def _varied(settings: Mapping[str, Mapping[str, object]]) -> str:
    """Return the paper's name of the setting that a table varies, "" if the paper names none."""
    names = {name for row in settings.values() for name in row}
    return names.pop().replace("_", " ") if len(names) == 1 else ""


def _bar(axis: Axes, x: float, width: float, cell: Measured, **look: Any) -> None:
    if cell.value is None:
        axis.annotate("n/a", (x, 0), ha="center", va="bottom", fontsize=6, color=GREY, rotation=90)
        return
    error = [[side] for side in error_bars(cell)] if cell.interval else None
    axis.bar(x, cell.value, 0.92 * width, yerr=error, edgecolor="white", error_kw={"linewidth": 0.8}, capsize=2, **look)
    top = cell.interval.high if cell.interval else cell.value
    axis.annotate(f"{cell.value:.1f}", (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=6)


def _points(axis: Axes, found: Sequence[tuple[int, Measured]], colour: str) -> None:
    axis.errorbar(
        [place for place, _ in found],
        [cell.value or 0.0 for _, cell in found],
        yerr=list(zip(*(error_bars(cell) for _, cell in found), strict=True)),
        label="ours, 95% interval",
        color=colour,
        marker="o",
        capsize=2,
    )
