"""Series that figures draw: runs that differ only in the seed, with a name for the legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean

from ace_bench.report.differences import all_settings, differences, value_text
from ace_bench.report.evidence import CallCosts, predictions, read_steps
from ace_bench.report.figures.draw import Series as DrawnSeries
from ace_bench.report.figures.style import MAX_SERIES, Look, looks
from ace_bench.report.records import RunSummary, latest_repetitions

_UNNAMED = ("mode.before", "mode.context", "seed", "attempt", "digest")
"""Settings that change no curve, or in which the runs of one series differ."""

Curve = tuple[list[float], list[float], list[float]]
"""Mean, minimum and maximum over seeds, by step."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The finished runs of one setting; ``name`` says in which settings it differs from the others of its figure."""

    name: str
    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, kw_only=True)
class TaskSeries:
    """The series of one task, each with the same look in all figures of the task."""

    series: tuple[Series, ...]
    looks: Mapping[str, Look]
    title: str


def task_series(runs: Sequence[RunSummary], title: str) -> TaskSeries:
    """Group the finished offline and online runs of one task by everything but the seed, and name the groups.

    Of more than ``MAX_SERIES`` groups those with the most usual settings are kept, some of each method and mode. The
    title says what all share, and how many are left out.
    """
    groups = _by_settings([run for run in runs if run.finished and run.mode in ("offline", "online")])
    kept, left = groups[:MAX_SERIES], len(groups) - MAX_SERIES
    differ = differences([replace(some[0], seed=0, attempt=1) for some in kept])
    names = differ.labels if differ.names else [some[0].method for some in kept]
    named = [Series(name=name, runs=some) for name, some in zip(names, kept, strict=True)]
    shared = f", labels={kept[0][0].labels}" if kept and "labels" not in differ.names else ""
    note = f"\nnot shown: {left} more, with less usual settings" if left > 0 else ""
    first, newline, rest = title.partition("\n")
    return TaskSeries(
        series=tuple(sorted(named, key=lambda one: one.name)),
        looks=looks(sorted(names)),
        title=f"{first}{shared}{newline}{rest}{note}",
    )


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


def curve_series(curve: Curve, name: str, look: Look) -> DrawnSeries:
    """Return a curve over the steps as a series of a figure."""
    mean, low, high = curve
    return DrawnSeries(name=name, look=look, kind="curve", x=range(1, len(mean) + 1), y=mean, low=low, high=high)


def score_curve(runs: Sequence[RunSummary]) -> Curve:
    """Running mean score, in percent, of the first rollout of each sample, before anything was learnt from it."""
    curves = []
    for run in runs:
        split = "test" if run.mode == "online" else "train"
        scores = [grade.score for grade in predictions(run.folder, split).values()]
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


def _over_seeds(curves: Sequence[Sequence[float]]) -> Curve:
    """Aggregate by step over seeds, up to the end of the shortest curve."""
    steps = list(zip(*curves, strict=False))
    return [fmean(step) for step in steps], [min(step) for step in steps], [max(step) for step in steps]
