"""The names of settings and metrics that a user gives, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.report.differences import Settings
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.grids import column_name

METRIC, SCORE, SEED, SAMPLES = "metric", "score", "seed", "samples"
"""The names that layouts have for the metric, the headline score, the seed and the set of tested samples."""
MISSING = "-"
"""The value of a setting that runs do not have."""
_SUGGESTED = 12
"""Number of names in an error."""
_NO_METRICS = ("schema", "seed")
"""Numbers in ``metrics.json`` that measure nothing."""


def setting_path(name: str, settings: Iterable[Settings]) -> str:
    """Return the path of a setting given by its path or last part; raises ``ConfigError``."""
    paths = dict.fromkeys(path for one in settings for path in one)
    if name in paths:
        return name
    found = [path for path in paths if path.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{name} may be {' or '.join(found)}; write one of them")
    last = {path.rpartition(".")[2]: path for path in paths}
    close = [last.get(word, word) for word in get_close_matches(name, [*paths, *last], n=3)]
    hint = f"did you mean {' or '.join(dict.fromkeys(close))}?" if close else "config.yaml of a run lists its settings"
    raise ConfigError(f"no run has the setting {name}; {hint}")


def check_metric(metric: str, runs: Iterable[RunSummary]) -> None:
    """Raise ``ConfigError`` if no finished run has the metric."""
    done = [run for run in runs if run.finished]
    if metric == SCORE or any(run.value(metric) is not None for run in done):
        return
    known = _metric_names(done)
    close = get_close_matches(metric, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known[:_SUGGESTED])} and more"
    raise ConfigError(f"no finished run has the metric {metric}; {hint}")


def unit_of(metric: str) -> str:
    """Return the unit of a metric: percent for scores, else by its path into ``metrics.json``; "" is a count."""
    group, _, rest = metric.partition(".")
    if group == "usd":
        return "dollars"
    if rest:
        return "seconds" if metric.endswith("_s") else "percent" if group in ("headline", "splits") else ""
    return "" if metric in ("n", "faults", "steps") else "percent"


def metric_title(metric: str) -> str:
    """Return a metric in words, with its unit unless the words name it: ``usd total``, ``timing adapt wall s``."""
    return column_name(metric.replace(".", " "))


def marks_of(*, simulated: bool, source: str) -> str:
    """Return the words that mark runs that cannot be compared with published numbers; "" for others."""
    words = ["simulated"] * simulated + ["sample data"] * (source == "sample")
    return f"[{', '.join(words)}: not comparable with published numbers]" if words else ""


def _metric_names(runs: Iterable[RunSummary]) -> list[str]:
    """Return the names of all numbers in the metrics of runs, those of the tasks first."""
    found: dict[str, None] = {SCORE: None}
    for run in runs:
        headline = run.metrics["headline"]
        found |= dict.fromkeys(run.metrics["splits"][headline["split"]]["after"])
    for run in runs:
        found |= dict.fromkeys(_numbers("", run.metrics))
    return [name for name in found if name not in _NO_METRICS]


def _numbers(prefix: str, value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{prefix}.{key}" if prefix else str(key), part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield prefix
