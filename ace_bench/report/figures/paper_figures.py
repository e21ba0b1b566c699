"""The paper's figures 1 and 5, how sensitive a method is to a setting (tables 16 to 21), and Combee's speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from math import isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING

from ace_bench.report.experiments import Experiments
from ace_bench.report.figures.axes import draw_cells, draw_level, error_bars, label_axes, log_axis, percent_axis
from ace_bench.report.figures.style import GREY, Look, Sheet, add_legend, looks, new_figure
from ace_bench.report.tables.cells import Measured, setting_warning
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.paper_tables import paper_table
from ace_bench.report.tables.results_index import Selection
from ace_bench.report.tables.table import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPEED = "combee"
_GREYS = ("#555555", "#808080", "#AAAAAA", "#CCCCCC")
_SHIFTS = ((3, 4), (4, -10), (-11, 4))
"""Where the names of points stand beside them, for the series in turn: points of several series may coincide."""
_PAPER = "paper"
BASES_LOOK = Look(colour=GREY, line="--", marker="", hatch="", width=1.0)
_BAR_SHARE = 0.92
"""The part of its room that a bar fills."""


def draw_bars(name: str, selection: Selection, title: str, sheet: Sheet, *, with_paper: bool) -> Figure | None:
    """Draw bars of methods by task (paper, figure 1) or test set (figure 5). Returns ``None`` without finished runs.

    The paper's numbers are drawn beside those measured in its setting, and with ``with_paper`` beside all. So are the
    published results of systems that are not run here.
    """
    cells = _bar_cells(name, selection)
    if not cells:
        return None
    fair = with_paper or selection.variant.comparable
    published = published_bars(name, selection.experiments)
    systems = published if fair else {}
    methods = dict.fromkeys(method for line in selection.experiments.by_name[name].bars.values() for method in line)
    names = [method for method in methods if method in systems or any(method in line for line in cells.values())]
    width = 0.8 / len(names)
    warning = _warning([cell for line in cells.values() for cell in line.values()], selection)
    figure, (axis,) = new_figure(title + warning, sheet, height=2.6, wide=True)
    for index, (method, look) in enumerate(looks(names).items()):
        for group, (where, line) in enumerate(cells.items()):
            spot = (group + (index - (len(names) - 1) / 2) * width, width)
            if method in systems:
                grey = replace(look, colour=_GREYS[index % len(_GREYS)])
                _draw_bar(axis, f"{method} (published)", grey, spot, systems[method][where])
                continue
            cell = line[method]
            _draw_bar(axis, method, look, spot, cell.value, errors=error_bars(cell))
            number = _published_number(cell, selection, with_paper=with_paper)
            if number is not None:
                ends = (spot[0] - width / 2, spot[0] + width / 2)
                axis.hlines(number, *ends, color="black", label=_PAPER, linewidth=1.2)
    metrics = {column_name(cell.metric): None for line in cells.values() for cell in line.values() if cell.metric}
    axis.set_xticks(range(len(cells)), [*cells])
    label_axes(axis, y=f"{' or '.join(metrics)} (%)")
    axis.margins(0.05, 0.12)
    axis.set_xlim(-0.5, len(cells) - 0.5)
    axis.grid(visible=False, axis="x")
    hidden = "" if fair else ", ".join(published)
    return add_legend(figure, f"published results not shown beside these runs: {hidden}" if hidden else "")


def _draw_bar(  # noqa: PLR0913 - what stands where, and how it looks
    axis: Axes,
    name: str,
    look: Look,
    spot: tuple[float, float],
    value: float | None,
    *,
    errors: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Draw a bar with its number at ``spot``: the middle and the width of its room."""
    x, width = spot
    if value is None or isnan(value):
        axis.bar(x, 0, width, label=name, color=look.colour, hatch=look.hatch)
        axis.annotate("n/a", (x, 0), ha="center", va="bottom", fontsize=6, color=GREY, rotation=90)
        return
    below, above = errors
    error = [[below], [above]] if any(errors) else None
    axis.bar(x, value, _BAR_SHARE * width, yerr=error, edgecolor="white", error_kw={"linewidth": 0.8}, capsize=2,
             label=name, color=look.colour, hatch=look.hatch)  # fmt: skip
    axis.annotate(f"{value:.1f}", (x, value + above), (0, 2), textcoords="offset points", ha="center", fontsize=6)


def _bar_cells(name: str, selection: Selection) -> dict[str, dict[str, Measured]]:
    """Return the cells behind the bars by group and method. Groups without a score are left out."""
    table = cache(lambda name: paper_table(name, selection))
    experiments = selection.experiments
    cells: dict[str, dict[str, Measured]] = {}
    for group, methods in experiments.by_name[name].bars.items():
        for method, ref in methods.items():
            table_name, row, column = ref.split("/")
            if row not in experiments.by_name[table_name].not_reproducible:
                cells.setdefault(group, {})[method] = table(table_name).cells[row][column]
    return {group: line for group, line in cells.items() if any(cell.value is not None for cell in line.values())}


def published_bars(name: str, experiments: Experiments) -> dict[str, dict[str, float]]:
    """Return the scores of systems that are not run here, by group.

    In a group without a score a system has the mean of its others.
    """
    bars = experiments.by_name[name].bars
    scores_by_method: dict[str, dict[str, float]] = {}
    for group, methods in bars.items():
        for method, ref in methods.items():
            table, row, _ = ref.split("/")
            if row in experiments.by_name[table].not_reproducible:
                scores_by_method.setdefault(method, {})[group] = experiments.cell(ref).value or nan
    return {
        method: {group: scores.get(group, fmean(scores.values())) for group in bars}
        for method, scores in scores_by_method.items()
    }


def draw_sensitivity(name: str, selection: Selection, title: str, sheet: Sheet, *, with_paper: bool) -> Figure | None:
    """Draw scores by the setting that a table varies, and the base as a line.

    Returns ``None`` for fewer than two rows.
    """
    experiment = selection.experiments.by_name[name]
    table = paper_table(name, selection)
    rows = {row: line for row, line in table.cells.items() if row != table.base}
    columns = [column for column in table.columns if any(line[column].runs for line in rows.values())]
    if sum(any(line[column].runs for column in columns) for line in rows.values()) < 2:
        return None
    settings = {row: planned_row.settings for row, planned_row in experiment.rows.items()}
    names = [", ".join(map(str, settings.get(row, {}).values())) or row.replace("_", " ") for row in rows]
    varied = {key.replace("_", " ") for row in settings.values() for key in row}
    x_label = varied.pop().capitalize() if len(varied) == 1 else experiment.title
    warning = _warning(table.measured, selection)
    figure, axes = new_figure(title + warning, sheet, len(columns), height=2.6, sharey=True)
    for axis, column in zip(axes, columns, strict=True):
        cells = [line[column] for line in rows.values()]
        points = [(float(index), cell) for index, cell in enumerate(cells) if cell.value is not None]
        draw_cells(axis, "ours, 95% interval", looks(["ours"])["ours"], points)
        published = [_published_number(cell, selection, with_paper=with_paper) for cell in cells]
        if any(value is not None for value in published):
            values = [nan if value is None else value for value in published]
            axis.plot(range(len(rows)), values, "s:", color="black", markersize=5, linewidth=1.4, label=_PAPER)
        level = table.cells[table.base][column].value
        if level is not None:
            draw_level(axis, table.base_title, BASES_LOOK, level)
        axis.set_xticks(range(len(names)), names)
        label_axes(axis, x_label, f"{_in_words(table.columns[column])} (%)")
        axis.margins(0.05, 0.15)
        axis.set_xlim(-0.4, len(rows) - 0.6)
        percent_axis(axis)
    return add_legend(figure)


def draw_speed(selection: Selection, title: str, sheet: Sheet) -> Figure | None:
    """Draw score and calls over the seconds of adaptation, by size of the batch.

    Returns ``None`` without finished runs.
    """
    table = paper_table(_SPEED, selection)
    ways: dict[str, list[tuple[float, str, Mapping[str, Measured]]]] = {}
    for row, planned_row in selection.experiments.by_name[_SPEED].rows.items():
        seconds = table.cells[row]["seconds"].value
        if seconds:
            ways.setdefault(planned_row.label, []).append(
                (seconds, str(planned_row.settings["batch"]), table.cells[row])
            )
    if not ways:
        return None
    figure, axes = new_figure(title + _warning(table.measured, selection), sheet, 2, height=3.0)
    labels = {"accuracy": "Accuracy (%)", "calls": "Calls of adaptation"}
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        for index, ((name, points), look) in enumerate(zip(ways.items(), looks(list(ways)).values(), strict=True)):
            draw_cells(axis, name, look, [(seconds, line[column]) for seconds, _, line in points])
            for seconds, batch, line in points:
                point, shift = (seconds, line[column].value or nan), _SHIFTS[index % len(_SHIFTS)]
                axis.annotate(batch, point, shift, textcoords="offset points", fontsize=7, color=look.colour)
        label_axes(axis, "Seconds of adaptation (numbers: samples a batch)", label)
        log_axis(axis)
        if column == "accuracy":
            percent_axis(axis)
    return add_legend(figure)


def _in_words(column: Heading) -> str:
    """Return what a column measures: ``Test-Normal TGC``, ``FiNER accuracy``."""
    return f"{column.above} {column.in_print[0]}".replace(" (Acc ↑)", " accuracy").replace(" ↑", "").strip()


def _published_number(cell: Measured, selection: Selection, *, with_paper: bool) -> float | None:
    """Return the paper's number for a cell, if it should be shown."""
    fair = selection.variant.comparable and not cell.deviations
    return cell.published if with_paper or fair else None


def _warning(cells: Iterable[Measured], selection: Selection) -> str:
    return setting_warning(cells).replace(" ", "\n", 1) if selection.variant.comparable else ""
