"""Runs of one task that a figure compares, as series with names and looks, and their curves.

Runs that differ only in the seed are one series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ace_bench.report.differences import all_settings, differences, value_text
from ace_bench.report.evidence import CallCosts, RolloutLine, predictions, read_journal, read_steps
from ace_bench.report.figures.style import MAX_SERIES, Look, looks
from ace_bench.report.records import RunSummary, latest_repetitions
from ace_bench.report.tables.grids import column_name

if TYPE_CHECKING:
    import pandas as pd

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
_UNNAMED = ("mode.before", "mode.context", "seed", "attempt", "digest")
"""Settings that change no curve, or in which the runs of one series differ."""


@dataclass(frozen=True, kw_only=True)
class RunSeries:
    """The finished runs of one setting. ``name`` says in which settings it differs from the others of its figure.

    It has the same look in all figures of a task.
    """

    name: str
    look: Look
    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The series of one figure. ``title`` says what all share, ``omitted`` how many series are left out."""

    series: tuple[RunSeries, ...]
    title: str
    omitted: str = ""


def compare_runs(runs: Sequence[RunSummary], title: str) -> ComparedRuns:
    """Group the finished offline and online runs of one task by everything but the seed, and name the groups.

    At most ``MAX_SERIES`` groups are kept: those with the most usual settings, and some of each method and mode.
    """
    groups = _by_settings([run for run in runs if run.finished and run.mode in ("offline", "online")])
    kept, omitted = groups[:MAX_SERIES], len(groups) - MAX_SERIES
    differ = differences([replace(same_runs[0], seed=0, attempt=1) for same_runs in kept])
    labels = differ.labels if differ.names else [""] * len(kept)
    methods = ["" if "method" in differ.names else same_runs[0].method for same_runs in kept]
    names = [name_in_words(" · ".join(filter(None, name_parts))) for name_parts in zip(methods, labels, strict=True)]
    name_looks = looks(sorted(names))
    series = [
        RunSeries(name=name, look=name_looks[name], runs=same_runs) for name, same_runs in zip(names, kept, strict=True)
    ]
    shared = f", labels={kept[0][0].labels}" if kept and "labels" not in differ.names else ""
    first, newline, other_lines = title.partition("\n")
    return ComparedRuns(
        series=tuple(sorted(series, key=lambda line: line.name)),
        title=f"{first}{shared}{newline}{other_lines}",
        omitted=f"+{omitted} more, with less usual settings" if omitted > 0 else "",
    )


def name_in_words(label: str) -> str:
    """Return the name of a run as readers know it: ``ACE, harmful every 5`` for ``ace · harmful_every=5``."""
    parts = (part.partition("=") for part in label.split(" · "))
    return ", ".join(
        f"{name.replace('_', ' ')} {'none' if value == 'null' else value}"
        if equals
        else _METHODS.get(name, column_name(name))
        for name, equals, value in parts
    )


def score_curve(runs: Sequence[RunSummary]) -> pd.DataFrame:
    """Return the running mean score, in percent, of the first rollouts of samples, before a method learnt from them."""
    import pandas as pd

    curves = []
    for run in runs:
        journal = read_journal(run.folder, RolloutLine)
        lines = predictions(journal, "test" if run.mode == "online" else "train").values()
        scores = pd.Series([line.grade.score for line in lines if line.grade], dtype=float)
        curves.append(100 * scores.expanding().mean())
    return _over_seeds(curves)


def size_curve(runs: Sequence[RunSummary]) -> pd.DataFrame:
    """Return the tokens of the context after each step."""
    import pandas as pd

    return _over_seeds(pd.Series([step.context_tokens for step in read_steps(run.folder)], dtype=float) for run in runs)


def cache_curve(calls: Sequence[CallCosts], window: int) -> pd.Series[float] | None:
    """Return the share of prompt tokens from a cache, in percent, over the last ``window`` calls, if it is known."""
    import pandas as pd

    token_counts = [(call.usage.cached, call.usage.prompt) for call in calls if not call.replayed]
    if not token_counts or any(None in pair for pair in token_counts):
        return None
    sums = pd.DataFrame(token_counts, columns=["cached", "prompt"], dtype=float).rolling(window, min_periods=1).sum()
    return 100 * sums["cached"] / sums["prompt"].clip(lower=1)


def _over_seeds(curves: Iterable[pd.Series[float]]) -> pd.DataFrame:
    """Return mean, minimum and maximum over seeds by step from 1 on, up to the end of the shortest curve."""
    import pandas as pd

    seeds = pd.DataFrame(dict(enumerate(curves))).dropna()
    seeds.index += 1
    return pd.DataFrame({"mean": seeds.mean(axis=1), "low": seeds.min(axis=1), "high": seeds.max(axis=1)})


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
    counts_by_kind = Counter[tuple[str, str]]()
    ranks: list[tuple[int, int, tuple[tuple[str, str], ...]]] = []
    for key in ordered:  # one group of each method and mode before a second one of any
        chosen = dict(key)
        counts_by_kind[chosen["method"], chosen["mode"]] += 1
        ranks.append((counts_by_kind[chosen["method"], chosen["mode"]], len(ranks), key))
    return [tuple(groups[key]) for _, _, key in sorted(ranks)]


def _word(path: str, value: object) -> str:
    """Return a value as text. Each seed starts from a context of its own."""
    return "given" if path.endswith(".initial") and value is not None else value_text(value)
