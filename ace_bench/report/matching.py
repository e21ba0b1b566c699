"""Which of the runs on disk is the one that an experiment plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.identity import CONTEXT_FILES, deciding, usual_embedder
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.overrides import Compose, quoted, run_overrides
from ace_bench.report.records import Damaged, RunSummary

_EMBEDDER, _AUTO = "embedder", "auto"
_CHOSEN = ("method", "mode", "task", "backbone")
_TARGET = "_target_"


class Runs:
    """Runs by what decides their result. A repetition (``resume=false``) stands before the run it repeats."""

    def __init__(self, runs: Iterable[RunSummary], compose: Compose) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._runs: dict[tuple[str, int, str], RunSummary] = {}
        self._measured_more: dict[tuple[str, int, str], RunSummary] = {}
        self._found: dict[tuple[PlannedRun, int, tuple[str, ...]], RunSummary | None] = {}
        self.damaged: list[Damaged] = []
        """Runs whose configuration cannot be read."""
        for run in sorted(runs, key=lambda run: (run.finished, run.attempt)):
            try:
                settings = completed(run, compose)
                embedder = settings.get(_EMBEDDER)
                usual = embedder == usual_embedder(simulated=run.simulated)
                for name in {str(embedder), _AUTO} if usual else {str(embedder)}:
                    self._runs[settings_digest(settings), run.seed, name] = run
                    if settings["mode"].get("before"):
                        self._measured_more[settings_digest(_without_before(settings)), run.seed, name] = run
            except (StoreError, KeyError) as error:
                self.damaged.append(Damaged(folder=run.folder, reason=f"config.yaml: {error}"))

    def find(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> RunSummary | None:
        """Return the planned run, finished or not, or ``None``; ``extra`` overrides all (``backbone=...``).

        One that was also evaluated before adaptation has all that is asked of one that was not.
        """
        key = (planned, seed, tuple(extra))
        if key not in self._found:
            overrides = self.overrides(planned, seed=seed, extra=extra)
            self._found[key] = None if overrides is None else self._made_with(self._compose(overrides), seed)
        return self._found[key]

    def _made_with(self, settings: Mapping[str, Any], seed: int) -> RunSummary | None:
        key = (settings_digest(settings), seed, str(settings[_EMBEDDER]))
        found, more = self._runs.get(key), self._measured_more.get(key)
        return more if more and (found is None or more.finished > found.finished) else found

    def overrides(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> list[str] | None:
        """Return all overrides of a planned run but its seed; ``None`` until the runs it needs are finished."""
        found = run_overrides(planned, extra, self._compose)
        for need in planned.needs:
            run = self.find(need.run, seed=seed, extra=extra)
            if run is None or not run.finished:
                return None
            found.append(f"{need.setting}={quoted(str(context_file(run, need.context)))}")
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

    A context given by file counts by the run folder it is in. The embedder is not in it.
    """
    found = deciding(settings)
    for group, name in CONTEXT_FILES:
        path = found[group].get(name)
        if path is not None:
            found[group] = {**found[group], name: "/".join(Path(path).parts[-4:])}
    return digest_of(_without_embedder(found))


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


def _without_embedder(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _without_embedder(part) for key, part in value.items() if key != _EMBEDDER}
