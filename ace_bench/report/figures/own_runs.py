"""Figures of a user's own runs: a metric against a setting, one line for each combination of the other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ace_bench.core.errors import ConfigError
from ace_bench.report.choosing import SCORE, sample_keys, setting_path
from ace_bench.report.differences import (
    CHOICES,
    Settings,
    all_settings,
    differences,
    differing_paths,
    short_names,
    value_text,
)
from ace_bench.report.figures.axes import amount_axis, draw_cells, draw_level, label_axes, number_axis, percent_axis
from ace_bench.report.figures.style import MAX_SERIES, SCREEN, Look, Sheet, add_legend, looks, new_figure, save, styled
from ace_bench.report.records import RunSummary, marks_of
from ace_bench.report.tables.cells import Measured
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.own_tables import SAMPLES, SEED, Layout, metric_title, own_tables, title_of
from ace_bench.report.tables.table import MISSING, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TASK = "task"
_LIMIT = "limit"
_BESIDE = 0.12
"""The distance between the points of two rows at one word."""


class Points(NamedTuple):
    """Runs that tested the same samples: by row of the table, the values of ``x`` with the cell there.

    ``levels`` holds the cells of runs that do not have the setting, such as runs of another method.
    """

    title: str
    lines: Mapping[str, Sequence[tuple[Any, Measured]]]
    levels: Mapping[str, Measured]


def write_sweep_figures(  # noqa: PLR0913 - what stands where, and how it is drawn
    runs: Iterable[RunSummary],
    out: Path,
    *,
    x: str,
    y: str = SCORE,
    lines: Sequence[str] = ("method",),
    sheet: Sheet = SCREEN,
) -> list[Path]:
    """Write ``<y>_by_<x>`` to the folder ``out`` for simulated and real runs apart, as ``save`` writes figures.

    Raises ``ConfigError`` if a setting or metric does not exist, or if there is nothing to draw a line through.
    """
    chosen = list(runs)
    settings = all_settings(chosen)
    path = setting_path(x, settings)
    line_paths = tuple(setting_path(name, settings) for name in lines)
    rows = tuple(dict.fromkeys((*line_paths, *_others(settings, path))))
    columns = (path,) if _TASK in (path, *rows) else (_TASK, path)
    tables = own_tables(chosen, Layout(rows=tuple(row for row in rows if row != path), columns=columns, metrics=(y,)))
    drawn = [(table, panels) for table in tables if (panels := panels_of(table, path))]
    if not drawn:
        raise ConfigError(_nothing(path, settings))
    stem = f"{y.replace('.', '_')}_by_{path.rpartition('.')[2]}"
    files = list[Path]()
    with styled(sheet):
        for table, panels in drawn:
            files += save(_draw_sweep(table, panels, path, sheet), out / f"{stem}{_kind(table)}", sheet)
    return files


def _kind(table: Table) -> str:
    return "_simulated" * bool(table.about["simulated"]) + "_sample_data" * (table.about["source"] == "sample")


def panels_of(table: Table, path: str) -> list[Points]:
    """Return the lines of each panel by task and tested samples, if some line has two points."""
    keys = sample_keys(list({run.folder: run for cell in table.measured for run in cell.runs}.values()))
    names = _short_names(table)
    groups: dict[tuple[str, str], list[str]] = {}
    for column, heading in table.columns.items():
        fields = {name: value for name, value in heading.fields.items() if name not in (path, SAMPLES)}
        tested = [keys[run.folder] for line in table.cells.values() for run in line[column].runs]
        if tested:
            groups.setdefault((title_of(fields, names), tested[0]), []).append(column)
    titled_panels = []
    for (title, _), columns in groups.items():
        lines: dict[str, list[tuple[Any, Measured]]] = {}
        levels: dict[str, Measured] = {}
        for row in table.rows:
            cells = [(table.columns[column].fields[path], table.cells[row][column]) for column in columns]
            measured = [(value, cell) for value, cell in cells if cell.value is not None]
            points = [(_plain(value), cell) for value, cell in measured if value != MISSING]
            lines |= {row: points} if points else {}
            levels |= {row: measured[-1][1]} if measured and not points else {}
        samples = {str(table.columns[column].fields.get(SAMPLES, MISSING)) for column in columns} - {MISSING}
        if any(len(points) > 1 for points in lines.values()):
            where = f"{title} ({', '.join(sorted(samples))})" if samples else title
            titled_panels.append((title, Points(where, lines, levels)))
    counts = Counter(title for title, _ in titled_panels)
    return [panel if counts[title] > 1 else panel._replace(title=title) for title, panel in titled_panels]


def _plain(value: Any) -> Any:
    """Return a value of a setting, as text where it is a list."""
    return value_text(value) if isinstance(value, list) else value


def _others(settings: Sequence[Settings], path: str) -> list[str]:
    """Return the settings other than ``path`` in which runs of one task differ: lines never join such runs."""
    differing: dict[str, None] = {}
    for task in dict.fromkeys(run_settings[_TASK] for run_settings in settings):
        of_task = [run_settings for run_settings in settings if run_settings[_TASK] == task]
        differing |= dict.fromkeys(name for name in differing_paths(of_task) if not _follows(name, path, of_task))
    hidden = (path, SEED, _LIMIT, f"{_LIMIT}.val", f"{_LIMIT}.test", "data", "source", "backbone.seed")
    return [name for name in differing if name not in hidden]


def _follows(follower: str, path: str, settings: Sequence[Settings]) -> bool:
    """Whether a setting always has the value of another one, such as a budget that two parts share."""
    return all(
        value_text(run_settings.get(follower, MISSING)) == value_text(run_settings.get(path, MISSING))
        for run_settings in settings
    )


def _nothing(path: str, settings: Sequence[Settings]) -> str:
    values = dict.fromkeys(value_text(run_settings[path]) for run_settings in settings if path in run_settings)
    if len(values) < 2:
        return f"{path} has one value in these runs ({', '.join(values)}); a figure over it needs at least two"
    if path == _LIMIT:
        return (
            "runs of another limit tested other samples, so no line may join their scores; vary the training split "
            "alone (limit={train: N, test: M}, and --x limit.train)"
        )
    return f"no two finished runs differ in {path} alone and tested the same samples, so there is no line to draw"


def _draw_sweep(table: Table, panels: Sequence[Points], path: str, sheet: Sheet) -> Figure:
    """Draw the panels of one table: a line for each row, over the values of the setting."""
    rows = list(dict.fromkeys(row for panel in panels for row in (*panel.lines, *panel.levels)))
    cells = [cell for panel in panels for points in panel.lines.values() for _, cell in points]
    names, shared = _line_names(table, rows)
    drawn_rows = {row: (names[row], look) for row, look in looks(rows[:MAX_SERIES]).items()}
    setting = short_names([path])[path].replace("_", " ")
    metrics = {cell.metric for cell in cells}
    metric = metric_title(metrics.pop()) if len(metrics) == 1 else SCORE
    unit = cells[0].place.unit
    scored = unit == "percent"
    measured = f"{metric} (%)" if scored else column_name(metric, unit)
    common = differences([run for cell in cells for run in cell.runs]).common
    title = f"{metric} by {setting}: {' · '.join(filter(None, (common, shared)))}"
    mark = marks_of(simulated=bool(table.about["simulated"]), source=str(table.about["source"]))
    bars = "bars: 95% intervals" if cells[0].points else "bars: smallest and largest value over seeds"
    full_title = "\n".join(filter(None, (title, mark, bars)))
    figure, axes = new_figure(full_title, sheet, len(panels), height=3.0, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, drawn_rows)
        label_axes(axis, setting, measured * (axis is axes[0]), panel.title)
        percent_axis(axis) if scored else amount_axis(axis, [cell.value or 0.0 for cell in cells])
    not_drawn = len(rows) - MAX_SERIES
    return add_legend(figure, f"+{not_drawn} more, not shown: choose fewer runs" if not_drawn > 0 else "")


def _draw_panel(axis: Axes, panel: Points, drawn_rows: Mapping[str, tuple[str, Look]]) -> None:
    """Draw the lines and levels of the rows in ``drawn_rows``, which gives the name and the look of each."""
    values = list(dict.fromkeys(value for points in panel.lines.values() for value, _ in points))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    places = {value: float(value) if numbers else float(index) for index, value in enumerate(values)}
    lines = {row: points for row, points in panel.lines.items() if row in drawn_rows}
    for number, (row, points) in enumerate(lines.items()):  # words have no order that a line could show
        shift = 0.0 if numbers else _BESIDE * (number - (len(lines) - 1) / 2)
        draw_cells(axis, *drawn_rows[row], [(places[value] + shift, cell) for value, cell in points], joined=numbers)
    for row in filter(drawn_rows.__contains__, panel.levels):
        draw_level(axis, *drawn_rows[row], panel.levels[row].value or 0.0)
    if numbers:
        number_axis(axis, sorted(places.values()))
    else:
        axis.set_xticks(range(len(places)), [*map(value_text, places)])
        axis.margins(0.15, 0.05)


def _line_names(table: Table, rows: Sequence[str]) -> tuple[dict[str, str], str]:
    """Name the lines by the settings in which they differ. Return the others as one text for the title."""
    short = _short_names(table)
    values_by_path: dict[str, dict[str, Any]] = {}
    for row in rows:
        for path, value in table.rows[row].fields.items():
            if value != MISSING:
                values_by_path.setdefault(path, {})[value_text(value)] = value
    varied = [path for path, values in values_by_path.items() if len(values) > 1] or list(values_by_path)[:1]
    names = {}
    for row in rows:
        values = table.rows[row].fields
        names[row] = title_of({path: values[path] for path in varied}, short)
    first_values = {path: next(iter(values.values())) for path, values in values_by_path.items()}
    shared = {path: value for path, value in first_values.items() if path not in (*varied, *CHOICES, "labels")}
    return names, title_of(shared, short)


def _short_names(table: Table) -> dict[str, str]:
    headings = [*table.rows.values(), *table.columns.values()]
    return short_names(dict.fromkeys(path for heading in headings for path in heading.fields))
