"""Which of the runs on disk is the one that an experiment plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.records import Damaged, RunSummary

Compose = Callable[[Sequence[str]], Mapping[str, Any]]
"""From overrides to the whole configuration, as ``run.py`` would resolve them."""

_DECIDING = ("task", "agent", "method", "mode", "labels", "limit", "prompts")
_WHERE = {"task": ("data_dir", "source")}
"""Settings that say where to find what a run's own record names by checksum."""
_CONTEXTS = {"method": "initial", "mode": "context"}
_BACKBONE = ("_target_", "model", "name")
_EMBEDDER = "embedder"
_EMBEDDED = "backbone=embedded"
_CHOSEN = ("method", "mode", "task", "backbone")
_TARGET = "_target_"


class Runs:
    """Runs by what decides their result. A repetition (``resume=false``) stands before the run it repeats."""

    def __init__(self, runs: Iterable[RunSummary], compose: Compose) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._runs: dict[tuple[str, int], RunSummary] = {}
        self._measured_more: dict[tuple[str, int], RunSummary] = {}
        self._found: dict[tuple[PlannedRun, int, tuple[str, ...]], RunSummary | None] = {}
        self.damaged: list[Damaged] = []
        """Runs whose configuration cannot be read."""
        for run in sorted(runs, key=lambda run: (run.finished, run.attempt)):
            try:
                settings = completed(run, compose)
                self._runs[settings_digest(settings), run.seed] = run
                if settings["mode"].get("before"):
                    self._measured_more[settings_digest(_without_before(settings)), run.seed] = run
            except (StoreError, KeyError) as error:
                self.damaged.append(Damaged(folder=run.folder, reason=f"config.yaml: {error}"))

    def find(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> RunSummary | None:
        """Return the planned run, finished or not, or ``None``; ``extra`` overrides all (``backbone=...``).

        One that was also evaluated before adaptation has all that is asked of one that was not.
        """
        key = (planned, seed, tuple(extra))
        if key not in self._found:
            overrides = self.overrides(planned, seed=seed, extra=extra)
            digest = "" if overrides is None else settings_digest(self._compose(overrides))
            found, more = self._runs.get((digest, seed)), self._measured_more.get((digest, seed))
            self._found[key] = more if more and (found is None or more.finished > found.finished) else found
        return self._found[key]

    def overrides(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> list[str] | None:
        """Return all overrides of a planned run but its seed; ``None`` until the runs it needs are finished."""
        found = [*_rehearsed(planned.overrides, extra), *extra]
        for need in planned.needs:
            run = self.find(need.run, seed=seed, extra=extra)
            if run is None or not run.finished:
                return None
            found.append(f"{need.setting}={_quoted(context_file(run, need.context))}")
        return found


def context_file(run: RunSummary, context: str) -> Path:
    """Where a run keeps one of its contexts."""
    return run.folder / "contexts" / f"{context}.json"


def completed(run: RunSummary, compose: Compose) -> Mapping[str, Any]:
    """Return a run's settings, with today's defaults for those that the version that made it did not have.

    Raises ``StoreError``, and ``KeyError`` where what is there is no configuration of a run.
    """
    settings = run.settings
    for group in _CHOSEN:
        settings[group][_TARGET]
    try:
        return _filled(settings, compose([f"{group}={getattr(run, group)}" for group in _CHOSEN]))
    except ConfigError:
        return settings  # of a method or task that is no longer there


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Digest of the settings that decide a run's result, from a composed configuration or a run's ``config.yaml``.

    Places, limits of budget and concurrency, and how a backbone is reached are left out, and so is the embedder, which
    a run chooses by its backbone. A context given by file counts by the run folder it is in.
    """
    parts = {name: settings.get(name) for name in _DECIDING}
    for group, names in _WHERE.items():
        parts[group] = {key: value for key, value in settings[group].items() if key not in names}
    for group, name in _CONTEXTS.items():
        path = settings[group].get(name)
        if path is not None:
            parts[group] = {**settings[group], name: "/".join(Path(path).parts[-4:])}
    backbones = {"generator": settings["backbone"], **(settings.get("roles") or {})}
    return digest_of(_without_embedder({**parts, "backbones": {role: _model(b) for role, b in backbones.items()}}))


def _filled(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Add keys that are missing, also in parts that build the same class."""
    found = {**usual, **settings}
    for key, part in settings.items():
        other = usual.get(key)
        if isinstance(part, Mapping) and isinstance(other, Mapping) and part.get(_TARGET) == other.get(_TARGET):
            found[key] = _filled(part, other)
    return found


def _without_before(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**settings, "mode": {**settings["mode"], "before": False}}


def _rehearsed(overrides: Sequence[str], extra: Sequence[str]) -> list[str]:
    """Where all is rehearsed with the embedded backbone, so are the roles that the plan gives another one."""
    if _EMBEDDED not in extra:
        return list(overrides)
    return [
        override.partition("=")[0] + "=embedded" if override.startswith("backbone@") else override
        for override in overrides
    ]


def _quoted(path: Path) -> str:
    """Write a path so that Hydra takes it as it stands, whatever is in it."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _model(backbone: Mapping[str, Any]) -> dict[str, Any]:
    return {key: backbone[key] for key in _BACKBONE if key in backbone}


def _without_embedder(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _without_embedder(part) for key, part in value.items() if key != _EMBEDDER}
