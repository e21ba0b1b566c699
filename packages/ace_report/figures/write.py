"""Write the figures for the finished runs of a results folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ace_bench.core.errors import DataError
from ace_report.figures.draw import Drawing, write_drawings
from ace_report.figures.field import score_by_cost
from ace_report.figures.paper_figures import bar_chart, context_collapse, sensitivity, speed_against_quality
from ace_report.figures.run_figures import (
    RunSeries,
    cache_reuse,
    cost_breakdown,
    learning_curves,
    score_against_cost,
    task_series,
)
from ace_report.figures.style import Sheet
from ace_report.tables.grids import column_name
from ace_report.tables.paper_tables import paper_table
from ace_report.tables.results_index import ALL, ResultsIndex, Selection, Wanted

KINDS = (
    "overall",
    "collapse",
    "leaderboard",
    "learning",
    "cost",
    "breakdown",
    "cache",
    "sensitivity",
    "field",
    "speed",
)
_NAMED = ("field", "speed")
"""Kinds that are drawn only where they are named, as their tables are."""
_OF_TASK: Mapping[str, tuple[Callable[[Sequence[RunSeries], str], Drawing | None], str]] = MappingProxyType(
    {
        "learning": (learning_curves, "{mode} adaptation"),
        "cost": (score_against_cost, "score against the cost of adaptation"),
        "breakdown": (cost_breakdown, "tokens by stage and role"),
        "cache": (cache_reuse, "cache reuse over a run"),
    }
)
"""Figures that show one task, with their titles."""
_VARYING = ("16", "17", "19", "20", "21")
"""Tables that vary one setting."""

_Drawn = Iterator[tuple[str, Drawing | None]]


def write_figures(index: ResultsIndex, out: Path, wanted: Wanted = ALL) -> list[Path]:
    """Write all figures that have finished runs to ``out``, as ``save`` does; ``wanted.names`` are of ``KINDS``.

    Without names, experiments that must be named are left out.

    Each figure shows runs of one set of conditions, which its title names. The paper's numbers are drawn beside
    numbers measured in its setting, or as ``wanted.paper`` and ``differences`` say.
    Raises ``ConfigError``, ``DataError`` and ``StoreError``.
    """
    for kind in wanted.names:
        if kind not in KINDS:
            raise DataError(f"there is no figure {kind}; there are {', '.join(KINDS)}")
    sheet = Sheet(style=wanted.style, width=wanted.width)
    return write_drawings(
        (
            (out / f"{name}_{selection.variant.slug}", drawing)
            for selection in index.selections
            for kind in wanted.names or [kind for kind in KINDS if kind not in _NAMED]
            for name, drawing in _drawn(kind, index, selection, with_paper=wanted.shows_paper(comparable=False))
            if drawing is not None
        ),
        sheet,
    )


def _drawn(kind: str, index: ResultsIndex, selection: Selection, *, with_paper: bool) -> _Drawn:
    """Draw one kind of figure from the runs of one set of conditions."""
    experiments = index.experiments

    def title(what: str) -> str:
        settings, _, warning = selection.variant.label.partition(" [")
        return f"{what}, {settings}" + (f"\n[{warning}" if warning else "")

    if kind == "overall":
        drawing = bar_chart("figure_1", experiments, selection, title("Overall results"), with_paper=with_paper)
        yield "figure_01_overall", drawing
    elif kind == "leaderboard":
        what = title("AppWorld, beside the leaderboard of September 2025")
        yield "figure_05_leaderboard", bar_chart("figure_5", experiments, selection, what, with_paper=with_paper)
    elif kind == "collapse":
        yield "figure_02_collapse", context_collapse(experiments, selection, title("Context collapse on AppWorld"))
    elif kind == "field":
        for name in experiments.combined:
            table = paper_table(name, experiments, selection)
            what = title(f"{experiments.by_name[name].title}: score against cost")
            yield from ((f"{name}_score_by_cost_{part}", figure) for part, figure in score_by_cost(table, what))
    elif kind == "speed":
        yield "combee_speed", speed_against_quality(experiments, selection, title("Combee: speed against quality"))
    elif kind == "sensitivity":
        for name in _VARYING:
            what = title(experiments.by_name[name].title)
            figure = sensitivity(name, experiments, selection, what, with_paper=with_paper)
            yield f"sensitivity_table_{name}", figure
    else:
        yield from _by_task(kind, selection, title)


def _by_task(kind: str, selection: Selection, title: Callable[[str], str]) -> _Drawn:
    for task in dict.fromkeys(run.task for run in selection.members if run.finished):
        some = [run for run in selection.members if run.task == task]
        draw, what = _OF_TASK[kind]
        for mode in ("offline", "online") if kind == "learning" else ("",):
            picked = [run for run in some if not mode or (run.mode == mode and run.finished and run.metrics["steps"])]
            series, whole, more = task_series(picked, title(f"{column_name(task)}: {what.format(mode=mode)}"))
            drawing = draw(series, whole) if series else None
            if drawing:
                yield "_".join(filter(None, (kind, task, mode))), replace(drawing, more=more)
