"""Series that figures draw: runs that differ only in the seed, with a name for the legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import identity_settings
from ace_bench.report.differences import differences
from ace_bench.report.evidence import CallCosts, predictions, read_steps
from ace_bench.report.figures.style import MAX_SERIES, Look, looks
from ace_bench.report.overrides import Compose
from ace_bench.report.records import RunSummary

_PARTS = ("method", "mode")
_UNNAMED = ("mode.before", "mode.context", "mode._target_", "method._target_")
"""Settings that change no curve, or that the name already contains."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The finished runs of one setting; ``changes`` are its settings that are not the defaults.

    ``name`` says in a legend in which settings it differs from the others of its figure.
    """

    task: str
    method: str
    mode: str
    labels: str
    changes: tuple[str, ...]
    runs: tuple[RunSummary, ...]
    name: str = ""


Curve = tuple[list[float], list[float], list[float]]
"""Mean, minimum and maximum over seeds, by step."""


def all_series(runs: Iterable[RunSummary], compose: Compose) -> list[Series]:
    """Group finished offline and online runs by everything but the seed; those with the fewest changes come first."""
    groups: dict[tuple[str, str, str, str, tuple[str, ...]], dict[int, RunSummary]] = {}
    for run in runs:
        if run.finished and run.mode in ("offline", "online"):
            key = (run.task, run.method, run.mode, run.labels, _changes(run, compose))
            best = groups.setdefault(key, {})
            if run.seed not in best or best[run.seed].attempt < run.attempt:
                best[run.seed] = run
    found = [
        Series(task=task, method=method, mode=mode, labels=labels, changes=changes, runs=tuple(by_seed.values()))
        for (task, method, mode, labels, changes), by_seed in groups.items()
    ]
    return sorted(
        found, key=lambda series: (len(series.changes), series.task, series.method, series.labels, series.changes)
    )


@dataclass(frozen=True, kw_only=True)
class TaskSeries:
    """The series of one task, each with the same look in all figures of the task."""

    series: tuple[Series, ...]
    looks: Mapping[str, Look]
    title: str

    def only(self, mode: str) -> TaskSeries:
        """Those of one mode."""
        return replace(self, series=tuple(one for one in self.series if one.mode == mode))


def task_series(series: Sequence[Series], title: str) -> TaskSeries:
    """Keep the ``MAX_SERIES`` series of one task with the fewest changes, and name them by their differences.

    The title says what all share, and how many series are left out.
    """
    kept, left = series[:MAX_SERIES], len(series) - MAX_SERIES
    differ = differences([replace(one.runs[0], seed=0, attempt=1) for one in kept])
    names = differ.labels if differ.names else [one.method for one in kept]
    named = [replace(one, name=name) for one, name in zip(kept, names, strict=True)]
    shared = f", labels={kept[0].labels}" if "labels" not in differ.names else ""
    note = f"\nnot shown: {left} more, with more settings that are not the defaults" if left > 0 else ""
    first, newline, rest = title.partition("\n")
    return TaskSeries(
        series=tuple(sorted(named, key=lambda one: one.name)),
        looks=looks(sorted(names)),
        title=f"{first}{shared}{newline}{rest}{note}",
    )


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


def _changes(run: RunSummary, compose: Compose) -> tuple[str, ...]:
    """Settings of method and mode that differ from their YAML files, without the context's file name."""
    chosen = [f"method={run.method}", f"mode={run.mode}", f"task={run.task}", f"backbone={run.backbone}"]
    try:
        usual = identity_settings(compose(chosen))
    except ConfigError:
        return ()  # a method or task that no longer exists
    flat = {part: dict(_flat(part, usual[part])) for part in _PARTS}
    return tuple(
        f"{key.rpartition('.')[2]}={'given' if key.endswith('.initial') else value}"
        for part in _PARTS
        for key, value in _flat(part, run.identity[part])
        if key not in _UNNAMED and "embedder" not in key and flat[part].get(key) != value
    )


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(f"{prefix}.{key}", part)
    else:
        yield prefix, value
