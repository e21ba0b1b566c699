"""How runs are chosen and compared: by their settings, metrics, and the samples that they tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TypeVar

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.report.differences import (
    Settings,
    all_settings,
    differing_paths,
    flat,
    setting_text,
    short_names,
    value_text,
)
from ace_bench.report.records import RunSummary

R = TypeVar("R", bound=RunSummary)

SAMPLE_SETTINGS = ("limit", "source", "data", "task.")
"""Settings that select samples, by the start of their path. Scores over different samples cannot be compared."""
SCORE = "score"
"""The name of the headline metric of each task."""
_SUGGESTED = 12
"""Number of names in an error."""
_NO_METRICS = ("schema", "seed")
"""Numbers in ``metrics.json`` that measure nothing."""


def with_settings(runs: Iterable[R], conditions: Iterable[str], *, or_without: bool = False) -> list[R]:
    """Return the runs that have all settings, each ``KEY=VALUE[,VALUE]`` with a path or its last part as the key.

    With ``or_without`` runs stay that do not know a setting, as a base does not know those of a method.

    Raises ``ConfigError`` if no run is left, or a setting is unknown.
    """
    chosen = [*runs]
    remaining = [*zip(chosen, all_settings(chosen), strict=True)]
    for condition in conditions:
        key, _, values = condition.partition("=")
        path = setting_path(key, [settings for _, settings in remaining])
        values_found = list(dict.fromkeys(value_text(settings[path]) for _, settings in remaining if path in settings))
        wanted = words(values, condition)
        if not {*wanted} & {*values_found}:
            raise ConfigError(f"no run has {condition}; there are {key}={','.join(values_found)}")
        remaining = [
            (run, settings)
            for run, settings in remaining
            if (value_text(settings[path]) in wanted if path in settings else or_without)
        ]
    return [run for run, _ in remaining]


def words(text: str, option: str) -> tuple[str, ...]:
    """Split the value of an option, a list separated by commas. Raises ``ConfigError`` if it is empty."""
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    if not names:
        raise ConfigError(f"{option} names nothing; give at least one name, or leave the option out")
    if repeated := next((word for word in names if names.count(word) > 1), None):
        raise ConfigError(f"{option} names {repeated} twice; name it once")
    return names


def setting_path(name: str, settings: Iterable[Settings]) -> str:
    """Return the path of a setting given by its path or last part. Raises ``ConfigError``."""
    paths = dict.fromkeys(path for run_settings in settings for path in run_settings)
    if name in paths:
        return name
    matching = [path for path in paths if path.endswith(f".{name}")]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ConfigError(f"{name} may be {' or '.join(matching)}; write one of them")
    last = {path.rpartition(".")[2]: path for path in paths}
    close = [last.get(word, word) for word in get_close_matches(name, [*paths, *last])]
    hint = f"did you mean {' or '.join(dict.fromkeys(close))}?" if close else "config.yaml of a run lists its settings"
    raise ConfigError(f"no run has the setting {name}; {hint}")


def check_metric(metric: str, runs: Iterable[RunSummary]) -> None:
    """Raise ``ConfigError`` if no finished run has the metric."""
    done = [run for run in runs if run.finished]
    if metric == SCORE or any(run.value(metric) is not None for run in done):
        return
    tested = (run.metrics["splits"][run.metrics["headline"]["split"]]["after"] for run in done)
    names = dict.fromkeys([SCORE, *chain.from_iterable(tested)])  # the tasks' own first
    for run in done:
        names |= dict.fromkeys(path for path, value in flat("", run.metrics) if type(value) in (int, float))
    metrics = [name for name in names if name not in _NO_METRICS]
    close = get_close_matches(metric, metrics)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(metrics[:_SUGGESTED])} and more"
    raise ConfigError(f"no finished run has the metric {metric}; {hint}")


def unit_of(metric: str) -> str:
    """Return the unit of a metric: percent for scores, else by its path into ``metrics.json``. Counts have "".

    A ratio has the unit of its numerator if that is seconds or dollars.
    """
    if "/" in metric:
        unit = unit_of(metric.partition("/")[0])
        return "" if unit == "percent" else unit
    group, _, subpath = metric.partition(".")
    if group == "usd":
        return "dollars"
    if subpath:
        return "seconds" if metric.endswith("_s") else "percent" if group in ("headline", "splits") else ""
    return "" if metric in ("n", "faults", "steps") else "percent"


def sample_keys(runs: Sequence[RunSummary]) -> dict[Path, str]:
    """Return a key of the samples that each run tested, by folder.

    The key of an unfinished run comes from its settings.
    """
    by_settings: dict[str, str] = {}
    planned = {run.folder: digest_of([run.identity["task"], run.identity.get("limit"), _data(run)]) for run in runs}
    keys = dict(planned)
    for run in runs:
        if run.finished:
            try:
                keys[run.folder] = digest_of([run.task, run.tested_samples, _data(run)])
            except StoreError:
                continue  # its cell shows the error
            by_settings[planned[run.folder]] = keys[run.folder]
    return {folder: by_settings.get(key, key) for folder, key in keys.items()}


def _data(run: RunSummary) -> object:
    return [run.source, run.contents.get("data")]


def sample_names(sets: Mapping[str, Settings]) -> dict[str, str]:
    """Name sets of samples by the settings that select them, or else by a digest."""
    paths = [path for path in differing_paths(list(sets.values())) if path.startswith(SAMPLE_SETTINGS)]
    names = short_names(paths)
    names_by_key = {
        key: ", ".join(setting_text(path, settings[path], names[path]) for path in paths if path in settings)
        for key, settings in sets.items()
    }
    if len(set(names_by_key.values())) == len(names_by_key) and all(names_by_key.values()):
        return names_by_key
    return {key: ", ".join(filter(None, (name, f"samples {key[:6]}"))) for key, name in names_by_key.items()}
