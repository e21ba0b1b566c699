"""Figures of the runs of one task: learning curves, cache reuse, and what adaptation cost.

Runs that differ only in the seed are one series, with a name for the legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from statistics import fmean
from textwrap import fill

from ace_bench.core.types import Stage
from ace_bench.report.differences import all_settings, differences, value_text
from ace_bench.report.evidence import CallCosts, RolloutLine, predictions, read_calls, read_steps
from ace_bench.report.records import RunSummary, latest_repetitions
from ace_report.figures.draw import Drawing, Note, Panel, Series, series_of_cells
from ace_report.figures.style import MAX_SERIES, Look, cost_axis, count_axis, looks, percent_axis, size_axis
from ace_report.tables.cells import Place, mean_of, measure
from ace_report.tables.field import tokens
from ace_report.tables.grids import column_name

_WINDOW = 50
"""Number of calls that each point of the cache curve averages over."""
_USUAL_PARTS = (
    *("adapt.generator", "adapt.reflector", "adapt.curator", "adapt.proposer"),
    *("evaluate.generator", "evaluate.judge", "adapt.judge"),
)
"""``stage.role`` of the calls in most runs: each has one colour in the figures of all tasks."""
_METHODS: Mapping[str, str] = {
    "ace": "ACE",
    "ace_empty": "ACE, empty playbook",
    "base": "Base LLM",
    "combee": "Combee",
    "dc": "DC",
    "dc_rs": "DC-RS",
    "gepa": "GEPA",
    "icl": "ICL",
    "mipro": "MIPROv2",
}
"""Methods by the names that readers know."""
_STAGES = {"adapt": "Adaptation", "evaluate": "Evaluation"}
_DIRECTIONS: Mapping[str, str] = {"in": "Prompt", "out": "Reply"}
_LABEL = 40
"""Characters of a line of a bar's name: longer ones leave the bars too little room."""
_UNNAMED = ("mode.before", "mode.context", "seed", "attempt", "digest")
"""Settings that change no curve, or in which the runs of one series differ."""

Curve = tuple[list[float], list[float], list[float]]
"""Mean, minimum and maximum over seeds, by step."""


@dataclass(frozen=True, kw_only=True)
class RunSeries:
    """The finished runs of one setting; ``name`` says in which settings it differs from the others of its figure.

    It has the same look in all figures of a task.
    """

    name: str
    look: Look
    runs: tuple[RunSummary, ...]


def task_series(runs: Sequence[RunSummary], title: str) -> tuple[list[RunSeries], str, str]:
    """Group the finished offline and online runs of one task by everything but the seed, and name the groups.

    Of more than ``MAX_SERIES`` groups those with the most usual settings are kept, some of each method and mode. The
    title says what all share, and the last text returned how many are left out.
    """
    groups = _by_settings([run for run in runs if run.finished and run.mode in ("offline", "online")])
    kept, left = groups[:MAX_SERIES], len(groups) - MAX_SERIES
    differ = differences([replace(some[0], seed=0, attempt=1) for some in kept])
    labels = differ.labels if differ.names else [""] * len(kept)
    methods = ["" if "method" in differ.names else some[0].method for some in kept]
    names = [name_in_words(" · ".join(filter(None, both))) for both in zip(methods, labels, strict=True)]
    shown = looks(sorted(names))
    series = [RunSeries(name=name, look=shown[name], runs=some) for name, some in zip(names, kept, strict=True)]
    shared = f", labels={kept[0][0].labels}" if kept and "labels" not in differ.names else ""
    more = f"+{left} more, with less usual settings" if left > 0 else ""
    first, newline, rest = title.partition("\n")
    return sorted(series, key=lambda one: one.name), f"{first}{shared}{newline}{rest}", more


def name_in_words(label: str) -> str:
    """Return the name of a run as readers know it: ``ACE, harmful every 5`` for ``ace · harmful_every=5``."""
    parts = (part.partition("=") for part in label.split(" · "))
    return ", ".join(
        f"{name.replace('_', ' ')} {'none' if value == 'null' else value}"
        if equals
        else _METHODS.get(name, column_name(name))
        for name, equals, value in parts
    )


def learning_curves(series: Sequence[RunSeries], title: str) -> Drawing | None:
    """Running mean score and size of the context by step, for the runs with steps of one task and mode."""
    run = series[0].runs[0]
    scores, sizes = (
        [curve_series(curve(one.runs), one.name, one.look) for one in series] for curve in (score_curve, size_curve)
    )
    panels = [
        Panel(
            series=scores,
            x_label="Test samples" if run.mode == "online" else "Training samples",
            y_label=f"{column_name(run.task)} {column_name(run.metrics['headline']['metric'])} so far (%)",
            scales=(percent_axis, count_axis),
        ),
        Panel(series=sizes, x_label="Adaptation steps", y_label="Context (tokens)", scales=(size_axis, count_axis)),
    ]
    return Drawing(panels=panels, title=title, height=3.0)


def cache_reuse(series: Sequence[RunSeries], title: str) -> Drawing | None:
    """Share of prompt tokens served from a cache, by call, for the runs of one task; ``None`` where unknown."""
    found = [(one, cache_curve(read_calls(one.runs[0].folder), _WINDOW)) for one in series]
    drawn = [
        Series(
            name=one.name,
            look=one.look,
            kind="curve",
            x=[100 * place / len(curve) for place in range(1, len(curve) + 1)],
            y=curve,
        )
        for one, curve in found
        if curve
    ]
    if not drawn:
        return None
    panel = Panel(
        series=drawn,
        x_label=f"Calls made (%); each point: the last {_WINDOW}",
        y_label="Cached prompt tokens (%)",
        scales=(lambda axis: axis.set_ylim(0, 100),),
    )
    return Drawing(panels=[panel], title=title, height=2.9)


def score_against_cost(series: Sequence[RunSeries], title: str) -> Drawing | None:
    """Headline score over the cost of adaptation, for the runs of one task; ``None`` if no cost is known.

    Costs are tokens if any dollars are unknown or all are zero.
    """
    costs = [mean_of([run.value("usd.adapt") for run in one.runs]) for one in series]
    in_dollars = None not in costs and any(costs)
    if not in_dollars:
        costs = [mean_of([tokens(run, "adapt") for run in one.runs]) for one in series]
    known = [cost for cost in costs if cost]
    if not known:
        return None
    headline = str(series[0].runs[0].metrics["headline"]["metric"])
    drawn = []
    for one, cost in zip(series, costs, strict=True):
        score = measure(Place(row=one.name, column=headline, unit="percent"), None, headline, one.runs)
        if cost is not None and score.value is not None:
            drawn.append(series_of_cells(one.name, one.look, [(cost, score)], "points"))
    panel = Panel(
        series=drawn,
        x_label=f"Cost of adaptation ({'dollars' if in_dollars else 'tokens'})",
        y_label=f"{column_name(series[0].runs[0].task)} {column_name(headline)} (%)",
        margins=(0.08, 0.15),
        scales=(partial(cost_axis, smallest=min(known)), percent_axis),
    )
    return Drawing(panels=[panel], title=title, height=3.0)


def cost_breakdown(series: Sequence[RunSeries], title: str) -> Drawing | None:
    """Tokens by role and stage, for the runs of one task; ``None`` if nothing is known."""
    parts = _parts(series)
    sides = {
        direction: {
            part: [mean_of([run.value(f"spent.{part}.all.{direction}") for run in one.runs]) for one in series]
            for part in parts
        }
        for direction in _DIRECTIONS
    }
    if all(value is None for values in sides["in"].values() for value in values):
        return None
    names = [fill(one.name, _LABEL) for one in series]
    lines = sum(name.count("\n") + 1 for name in names)
    panels = [_stack_tokens(by_part, names, _DIRECTIONS[direction]) for direction, by_part in sides.items()]
    panels[0] = replace(panels[0], scales=(lambda axis: axis.invert_yaxis(),))  # the first bar stands on top
    return Drawing(panels=panels, title=title, height=1.5 + 0.14 * lines + 0.1 * len(names), sharey=True)


def curve_series(curve: Curve, name: str, look: Look) -> Series:
    """Return a curve over the steps as a series of a figure."""
    mean, low, high = curve
    return Series(name=name, look=look, kind="curve", x=range(1, len(mean) + 1), y=mean, low=low, high=high)


def score_curve(runs: Sequence[RunSummary]) -> Curve:
    """Running mean score, in percent, of the first rollout of each sample, before anything was learnt from it."""
    curves = []
    for run in runs:
        split = "test" if run.mode == "online" else "train"
        lines = predictions(run.folder, split, RolloutLine).values()
        scores = [line.grade.score for line in lines if line.grade]
        curves.append([100 * total / count for count, total in enumerate(accumulate(scores), start=1)])
    return _over_seeds(curves)


def size_curve(runs: Sequence[RunSummary]) -> Curve:
    """Tokens of the context after each step."""
    return _over_seeds([[float(step.context_tokens) for step in read_steps(run.folder)] for run in runs])


def cache_curve(calls: Sequence[CallCosts], window: int) -> list[float] | None:
    """Share of prompt tokens served from a cache, in percent, over the last ``window`` calls; ``None`` if unknown."""
    made = [call.usage for call in calls if not call.replayed]
    pairs = [(usage.cached, usage.prompt) for usage in made if usage.cached is not None and usage.prompt is not None]
    if not pairs or len(pairs) < len(made):
        return None
    cached = [0, *accumulate(pair[0] for pair in pairs)]
    prompt = [0, *accumulate(pair[1] for pair in pairs)]
    starts = [max(0, end - window) for end in range(1, len(prompt))]
    return [
        100 * (cached[end] - cached[start]) / max(1, prompt[end] - prompt[start])
        for end, start in enumerate(starts, start=1)
    ]


def _by_settings(runs: Sequence[RunSummary]) -> list[tuple[RunSummary, ...]]:
    """Return the runs in groups of one run a seed, those with the most usual settings first."""
    keys = {
        run.folder: tuple((path, _word(path, value)) for path, value in settings.items() if path not in _UNNAMED)
        for run, settings in zip(runs, all_settings(runs), strict=True)
    }
    groups: dict[tuple[tuple[str, str], ...], list[RunSummary]] = {}
    for (key, _), run in latest_repetitions(runs, lambda run: (keys[run.folder], run.seed)).items():
        groups.setdefault(key, []).append(run)
    counts = Counter(setting for key in groups for setting in key)
    usual = {path: word for (path, word), _ in reversed(counts.most_common())}
    ordered = sorted(groups, key=lambda key: (sum(usual[path] != word for path, word in key), key))
    seen = Counter[tuple[str, str]]()
    ranks: list[tuple[int, int, tuple[tuple[str, str], ...]]] = []
    for key in ordered:  # one group of each method and mode before a second one of any
        chosen = dict(key)
        seen[chosen["method"], chosen["mode"]] += 1
        ranks.append((seen[chosen["method"], chosen["mode"]], len(ranks), key))
    return [tuple(groups[key]) for _, _, key in sorted(ranks)]


def _word(path: str, value: object) -> str:
    """Return a value as text; each seed starts from a context of its own."""
    return "given" if path.endswith(".initial") and value is not None else value_text(value)


def _stack_tokens(by_part: Mapping[str, Sequence[float | None]], names: Sequence[str], what: str) -> Panel:
    """Stack the tokens of all parts on each other, one bar for each series."""
    drawn = looks([*_USUAL_PARTS, *sorted(set(by_part).difference(_USUAL_PARTS))])
    totals = [sum(value or 0.0 for value in line) for line in zip(*by_part.values(), strict=True)]
    units = (("", 1.0), (" (thousands)", 1e3), (" (millions)", 1e6))
    unit, scale = next((one for one in units if max(totals, default=0.0) < 1e4 * one[1]), units[-1])
    series, left = [], [0.0] * len(totals)
    for part, values in by_part.items():
        widths = [(value or 0.0) / scale for value in values]
        stage, _, role = part.partition(".")
        name, rows = f"{_STAGES[stage]}: {role.replace('_', ' ').capitalize()}", range(len(widths))
        series.append(Series(name=name, look=drawn[part], kind="stack", x=rows, y=widths, low=left))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    unknown = [place for place in range(len(totals)) if any(values[place] is None for values in by_part.values())]
    notes = [Note(text="n/a", at=(left[place], place), shift=(2, 0), style={"va": "center"}) for place in unknown]
    return Panel(series=series, names=names, notes=notes, x_label=f"{what} tokens{unit}")


def _parts(series: Sequence[RunSeries]) -> list[str]:
    """Return ``stage.role`` of all calls, the usual ones first."""
    calls = [(stage, run.metrics["calls"][stage]) for stage in Stage for one in series for run in one.runs]
    found = {f"{stage}.{role}" for stage, roles in calls for role in roles}
    return [part for part in _USUAL_PARTS if part in found] + sorted(found.difference(_USUAL_PARTS))


def _over_seeds(curves: Sequence[Sequence[float]]) -> Curve:
    """Aggregate by step over seeds, up to the end of the shortest curve."""
    steps = list(zip(*curves, strict=False))
    return [fmean(step) for step in steps], [min(step) for step in steps], [max(step) for step in steps]
