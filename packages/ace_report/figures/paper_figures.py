"""The paper's figures 1 and 2, how sensitive a method is to a setting (tables 16 to 21), and Combee's speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING

from ace_bench.report.evidence import sharpest_fall
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import RunSummary
from ace_report.experiments import Experiments
from ace_report.figures.draw import Drawing, Note, Panel, Series, series_of_cells
from ace_report.figures.run_figures import curve_series, score_curve, size_curve
from ace_report.figures.style import GREY, Look, count_axis, log_axis, looks, percent_axis, size_axis
from ace_report.tables.cells import Measured, mean_of, setting_warning
from ace_report.tables.paper_tables import paper_table
from ace_report.tables.results_index import Selection
from ace_report.tables.table import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLLAPSE, _SPEED = "figure_2", "combee"
_GREYS = ("#555555", "#808080", "#AAAAAA", "#CCCCCC")
_SHIFTS = ((3, 4), (4, -10), (-11, 4))
"""Where the names of points stand beside them, for the series in turn: points of several series may coincide."""
_COLLAPSED = 0.5
"""A step that leaves this share of the tokens, or less, is a collapse."""
_SO_FAR = "TGC of the samples so far"
_PAPER = "paper"
_PAPERS_LOOK = Look(colour="black", line=":", marker="s", hatch="", width=1.4)
_BASES_LOOK = Look(colour=GREY, line="--", marker="", hatch="", width=1.0)


def bar_chart(
    name: str, experiments: Experiments, selection: Selection, title: str, *, with_paper: bool
) -> Drawing | None:
    """Bars of methods by task (paper, figure 1) or test set (figure 5); ``None`` without finished runs.

    The paper's numbers are drawn beside those measured in its setting, and with ``with_paper`` beside all. So are the
    published results of systems that are not run here.
    """
    cells = bar_cells(name, experiments, selection)
    if not cells:
        return None
    fair = with_paper or selection.variant.comparable
    others = published_bars(name, experiments) if fair else {}
    methods = dict.fromkeys(method for line in experiments.by_name[name].bars.values() for method in line)
    names = [method for method in methods if method in others or any(method in line for line in cells.values())]
    width = 0.8 / len(names)
    series, marks = [], list[tuple[float, float]]()
    for place, (method, look) in enumerate(looks(names).items()):
        shift = (place - (len(names) - 1) / 2) * width
        if method in others:
            values = [others[method][group] for group in cells]
            xs = [group + shift for group in range(len(cells))]
            grey = replace(look, colour=_GREYS[place % len(_GREYS)])
            series.append(Series(name=f"{method} (published)", look=grey, kind="bars", x=xs, y=values, low=values,
                                 high=values, width=width))  # fmt: skip
            continue
        points = [(group + shift, line[method]) for group, line in enumerate(cells.values())]
        bars = series_of_cells(method, look, points, "bars")
        series.append(replace(bars, width=width))
        found = ((x, _published_number(cell, selection, with_paper=with_paper)) for x, cell in points)
        marks += [(x, value) for x, value in found if value is not None]
    if marks:
        places, numbers = zip(*marks, strict=True)
        series.append(Series(name=_PAPER, look=_PAPERS_LOOK, kind="marks", x=places, y=numbers, width=width))

    def frame(axis: Axes) -> None:
        axis.set_xlim(-0.5, len(cells) - 0.5)
        axis.grid(visible=False, axis="x")

    panel = Panel(series=series, names=list(cells), y_label="Score (%)", margins=(0.05, 0.12), scales=(frame,))
    warning = _warning([cell for line in cells.values() for cell in line.values()], selection)
    hidden = [] if fair else list(published_bars(name, experiments))
    more = f"published results not shown beside these runs: {', '.join(hidden)}" if hidden else ""
    return Drawing(panels=[panel], title=title + warning, height=2.6, wide=True, more=more)


def bar_cells(name: str, experiments: Experiments, selection: Selection) -> dict[str, dict[str, Measured]]:
    """Return the cells behind the bars by group and method; groups without a score are left out."""
    table = cache(lambda name: paper_table(name, experiments, selection))
    cells: dict[str, dict[str, Measured]] = {}
    for group, methods in experiments.by_name[name].bars.items():
        for method, ref in methods.items():
            other, row, column = ref.split("/")
            if row not in experiments.by_name[other].not_reproducible:
                cells.setdefault(group, {})[method] = table(other).cells[row][column]
    return {group: line for group, line in cells.items() if any(cell.value is not None for cell in line.values())}


def published_bars(name: str, experiments: Experiments) -> dict[str, dict[str, float]]:
    """Return the scores of systems that are not run here, by group; in a group without any, their mean."""
    bars = experiments.by_name[name].bars
    found: dict[str, dict[str, float]] = {}
    for group, methods in bars.items():
        for method, ref in methods.items():
            table, row, _ = ref.split("/")
            if row in experiments.by_name[table].not_reproducible:
                found.setdefault(method, {})[group] = experiments.cell(ref).value or nan
    return {
        method: {group: scores.get(group, fmean(scores.values())) for group in bars} for method, scores in found.items()
    }


def sensitivity(
    name: str, experiments: Experiments, selection: Selection, title: str, *, with_paper: bool
) -> Drawing | None:
    """Scores by the setting that a table varies, the base as a line; ``None`` if fewer than two rows have runs."""
    table = paper_table(name, experiments, selection)
    settings = {row: one.settings for row, one in experiments.by_name[name].rows.items()}
    rows = {row: line for row, line in table.cells.items() if row != table.base}
    columns = [column for column in table.columns if any(line[column].runs for line in rows.values())]
    if not columns or sum(any(line[column].runs for column in columns) for line in rows.values()) < 2:
        return None
    ours = looks(["ours"])["ours"]
    names = [", ".join(map(str, settings.get(row, {}).values())) or row.replace("_", " ") for row in rows]
    varied = {key.replace("_", " ") for row in settings.values() for key in row}
    x_label = varied.pop().capitalize() if len(varied) == 1 else experiments.by_name[name].title
    panels = []
    for column in columns:
        cells = [line[column] for line in rows.values()]
        found = [(float(place), cell) for place, cell in enumerate(cells) if cell.value is not None]
        series = [series_of_cells("ours, 95% interval", ours, found)]
        published = [_published_number(cell, selection, with_paper=with_paper) for cell in cells]
        if any(value is not None for value in published):
            values = [nan if value is None else value for value in published]
            series.append(Series(name=_PAPER, look=_PAPERS_LOOK, kind="line", x=range(len(rows)), y=values))
        level = table.cells[table.base][column].value
        if level is not None:
            series.append(Series(name=table.base_title, look=_BASES_LOOK, kind="level", y=[level]))
        panels.append(
            Panel(
                series=series,
                names=names,
                x_label=x_label,
                y_label=f"{_in_words(table.columns[column])} (%)",
                margins=(0.05, 0.15),
                scales=(lambda axis: axis.set_xlim(-0.4, len(rows) - 0.6), percent_axis),
            )
        )
    return Drawing(panels=panels, title=title + _warning(table.measured, selection), height=2.6, sharey=True)


def speed_against_quality(experiments: Experiments, selection: Selection, title: str) -> Drawing | None:
    """Score and calls over the seconds of adaptation, by size of the batch; ``None`` without finished runs."""
    table = paper_table(_SPEED, experiments, selection)
    ways: dict[str, list[tuple[float, str, Mapping[str, Measured]]]] = {}
    for row, one in experiments.by_name[_SPEED].rows.items():
        seconds = table.cells[row]["seconds"].value
        if seconds:
            batch = str(one.settings["batch"])
            ways.setdefault(one.label, []).append((seconds, batch, table.cells[row]))
    if not ways:
        return None
    panels = []
    for column, label in (("accuracy", "Accuracy (%)"), ("calls", "Calls of adaptation")):
        series, notes = [], list[Note]()
        for place, ((name, points), look) in enumerate(zip(ways.items(), looks(list(ways)).values(), strict=True)):
            series.append(series_of_cells(name, look, [(seconds, line[column]) for seconds, _, line in points]))
            found = [(batch, (seconds, line[column].value or nan)) for seconds, batch, line in points]
            style, shift = {"color": look.colour}, _SHIFTS[place % len(_SHIFTS)]
            notes += [Note(text=batch, at=at, shift=shift, style=style) for batch, at in found]
        scales = (log_axis, percent_axis) if column == "accuracy" else (log_axis,)
        x_label = "Seconds of adaptation (numbers: samples a batch)"
        panels.append(Panel(series=series, notes=notes, x_label=x_label, y_label=label, scales=scales))
    return Drawing(panels=panels, title=title + _warning(table.measured, selection), height=3.0)


def _in_words(column: Heading) -> str:
    """Return what a column measures: ``Test-Normal TGC``, ``FiNER accuracy``."""
    return f"{column.above} {column.in_print[0]}".replace(" (Acc ↑)", " accuracy").replace(" ↑", "").strip()


def context_collapse(experiments: Experiments, selection: Selection, title: str) -> Drawing | None:
    """Size of the context by step under rewriting and under incremental updates (paper, figure 2)."""
    falls = _falls(experiments, selection)
    if not falls:
        return None
    sizes, scores, notes = [], [], list[Note]()
    for fall, look in zip(falls, looks([fall.name for fall in falls]).values(), strict=True):
        # One run: a mean over seeds would smooth the collapse.
        tokens, *_ = size_curve([fall.run])
        step = sharpest_fall([int(size) for size in tokens])
        name = fall.name
        if step is not None and tokens[step] <= _COLLAPSED * tokens[step - 1]:
            notes += _fall_notes(fall, (step, tokens[step - 1], tokens[step]), look)
        elif step is not None:
            name += _fall_text(fall, tokens[step - 1], tokens[step])
        sizes.append(curve_series(size_curve([fall.run]), name, look))
        scores.append(curve_series(score_curve([fall.run]), name, look))
    base = selection.finished(experiments.run(_COLLAPSE, "baseline", "accuracy"))
    level = mean_of([run.value(experiments.by_name[_COLLAPSE].columns["accuracy"].metric) for run in base])
    if level is not None:
        scores.append(Series(name="ReAct, no adaptation", look=_BASES_LOOK, kind="level", y=[level]))
    model = experiments.by_name[_COLLAPSE].model
    depart = any(selection.deviations(fall.planned, model) for fall in falls)
    panels = [
        Panel(
            series=sizes,
            notes=notes,
            x_label="Adaptation steps",
            y_label="Context (tokens)",
            margins=(0.05, 0.2),
            scales=(size_axis, count_axis),
        ),
        Panel(series=scores, x_label="Test samples", y_label=f"{_SO_FAR} (%)", scales=(percent_axis, count_axis)),
    ]
    warning = "\n[not the paper's setting]" * (depart and selection.variant.comparable)
    return Drawing(panels=panels, title=title + warning, height=3.0)


@dataclass(frozen=True, kw_only=True)
class _Fall:
    """A run whose context may have collapsed, and the accuracy of its contexts ``before`` and ``after``."""

    name: str
    planned: PlannedRun
    run: RunSummary
    accuracies: Mapping[str, float]


def _falls(experiments: Experiments, selection: Selection) -> list[_Fall]:
    experiment = experiments.by_name[_COLLAPSE]
    names: dict[PlannedRun, str] = {}
    accuracies: dict[PlannedRun, dict[str, float]] = {}
    for row, line in experiment.rows.items():
        if line.adapts:
            planned = experiments.run(_COLLAPSE, row, "tokens")
            names.setdefault(planned, line.label if line.ours else line.label.partition(",")[0])
            tested = selection.finished(experiments.run(_COLLAPSE, row, "accuracy"))
            accuracy = mean_of([run.value(experiment.columns["accuracy"].metric) for run in tested])
            if accuracy is not None:
                accuracies.setdefault(planned, {})[line.who] = accuracy
    return [
        _Fall(name=name, planned=planned, run=runs[0], accuracies=accuracies.get(planned, {}))
        for planned, name in names.items()
        if (runs := selection.finished(planned))
    ]


def _fall_text(fall: _Fall, before: float, after: float) -> str:
    """Describe the largest loss of tokens if it is no collapse, and if a context before or after it was evaluated."""
    if not fall.accuracies:
        return ""
    accuracies = ", ".join(f"{value:.1f} {who}" for who, value in fall.accuracies.items())
    return f"\n(sharpest fall: {before:,.0f} to {after:,.0f} tokens,\naccuracy {accuracies})"


def _fall_notes(fall: _Fall, sizes: tuple[int, float, float], look: Look) -> list[Note]:
    """Label a collapse with the sizes before and after it, and with the accuracies if those contexts were evaluated."""
    step, before, after = sizes
    notes = []
    for place, size, who in ((step, before, "before"), (step + 1, after, "after")):
        accuracy = fall.accuracies.get(who)
        text = f"{size:,.0f} tokens" + ("" if accuracy is None else f"\naccuracy {accuracy:.1f}")
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
        style = {"ha": "right" if who == "before" else "left", "color": look.colour, "bbox": box}
        notes.append(Note(text=text, at=(place, size), shift=(-4 if who == "before" else 4, 4), style=style))
    return notes


def _published_number(cell: Measured, selection: Selection, *, with_paper: bool) -> float | None:
    """Return the paper's number for a cell, if it should be shown."""
    fair = selection.variant.comparable and not cell.deviations
    return cell.published if with_paper or fair else None


def _warning(cells: Iterable[Measured], selection: Selection) -> str:
    return setting_warning(cells).replace(" ", "\n", 1) if selection.variant.comparable else ""
