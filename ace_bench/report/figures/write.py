"""Write the figures for the finished runs of a results folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from ace_bench.core.errors import DataError
from ace_bench.report.figures.collapse import draw_context_collapse
from ace_bench.report.figures.field import draw_fields
from ace_bench.report.figures.paper_figures import draw_bars, draw_sensitivity, draw_speed
from ace_bench.report.figures.run_figures import (
    draw_cache_reuse,
    draw_cost_breakdown,
    draw_learning_curves,
    draw_score_against_cost,
)
from ace_bench.report.figures.series import ComparedRuns, compare_runs
from ace_bench.report.figures.style import Sheet, save, styled
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.paper_tables import paper_table
from ace_bench.report.tables.results_index import ALL, ResultsIndex, Selection, Wanted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
_OF_TASK: Mapping[str, tuple[Callable[[ComparedRuns, Sheet], Figure | None], str]] = MappingProxyType(
    {
        "learning": (draw_learning_curves, "{mode} adaptation"),
        "cost": (draw_score_against_cost, "score against the cost of adaptation"),
        "breakdown": (draw_cost_breakdown, "tokens by stage and role"),
        "cache": (draw_cache_reuse, "cache reuse over a run"),
    }
)
"""Figures that show one task, with their titles."""
_VARYING = ("16", "17", "19", "20", "21")
"""Tables that vary one setting."""

_Figures: TypeAlias = "Iterator[tuple[str, Figure | None]]"
"""The beginning of a file's name, and the figure, if there is anything to draw."""


def write_figures(index: ResultsIndex, out: Path, wanted: Wanted = ALL) -> list[Path]:
    """Write all figures that have finished runs to ``out``, as ``save`` does. ``wanted.names`` are of ``KINDS``.

    Without names, experiments that must be named are left out.

    Each figure shows runs of one set of conditions, which its title names. The paper's numbers are drawn beside
    numbers measured in its setting, or as ``wanted.paper`` and ``differences`` say.
    Raises ``ConfigError``, ``DataError`` and ``StoreError``.
    """
    for kind in wanted.names:
        if kind not in KINDS:
            raise DataError(f"there is no figure {kind}; there are {', '.join(KINDS)}")
    sheet = Sheet(style=wanted.style, width=wanted.width)
    files = list[Path]()
    with styled(sheet):
        for selection in index.selections:
            for kind in wanted.names or [kind for kind in KINDS if kind not in _NAMED]:
                for name, figure in _draw(kind, selection, sheet, with_paper=wanted.shows_paper(comparable=False)):
                    if figure is not None:
                        files += save(figure, out / f"{name}_{selection.variant.slug}", sheet)
    return files


def _draw(kind: str, selection: Selection, sheet: Sheet, *, with_paper: bool) -> _Figures:
    """Draw one kind of figure from the runs of one set of conditions."""
    experiments = selection.experiments

    def title(subject: str) -> str:
        settings, _, warning = selection.variant.label.partition(" [")
        return f"{subject}, {settings}" + (f"\n[{warning}" if warning else "")

    match kind:
        case "overall":
            full_title = title("Overall results")
            yield "figure_01_overall", draw_bars("figure_1", selection, full_title, sheet, with_paper=with_paper)
        case "leaderboard":
            full_title = title("AppWorld, beside the leaderboard of September 2025")
            yield "figure_05_leaderboard", draw_bars("figure_5", selection, full_title, sheet, with_paper=with_paper)
        case "collapse":
            full_title = title("Context collapse on AppWorld")
            yield "figure_02_collapse", draw_context_collapse(selection, full_title, sheet)
        case "field":
            for name in experiments.combined:
                full_title = title(f"{experiments.by_name[name].title}: score against cost")
                fields = draw_fields(paper_table(name, selection), full_title, sheet)
                yield from ((f"{name}_score_by_cost_{part}", figure) for part, figure in fields)
        case "speed":
            yield "combee_speed", draw_speed(selection, title("Combee: speed against quality"), sheet)
        case "sensitivity":
            for name in _VARYING:
                full_title = title(experiments.by_name[name].title)
                drawn = draw_sensitivity(name, selection, full_title, sheet, with_paper=with_paper)
                yield f"sensitivity_table_{name}", drawn
        case _:
            yield from _draw_tasks(kind, selection, title, sheet)


def _draw_tasks(kind: str, selection: Selection, title: Callable[[str], str], sheet: Sheet) -> _Figures:
    draw, subject = _OF_TASK[kind]
    for task in dict.fromkeys(run.task for run in selection.members if run.finished):
        runs = [run for run in selection.members if run.task == task]
        for mode in ("offline", "online") if kind == "learning" else ("",):
            picked = [run for run in runs if not mode or (run.mode == mode and run.finished and run.metrics["steps"])]
            compared = compare_runs(picked, title(f"{column_name(task)}: {subject.format(mode=mode)}"))
            if compared.series:
                yield "_".join(filter(None, (kind, task, mode))), draw(compared, sheet)
