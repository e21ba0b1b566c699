"""Find the run on disk for a planned run, and say in which settings a run differs from the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import CONTEXT_FILES, GROUPS, identity_settings
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.overrides import Compose, override_value, quoted, run_overrides
from ace_bench.report.records import RunSummary

_CHOSEN = ("method", "mode", "task", "backbone")
_TARGET = "_target_"
_EMBEDDER = "embedder"
_TOP = ("labels", "limit", "prompts")
_NOT_COMPARED = {(group, name) for group, name in CONTEXT_FILES} | {("mode", "before")}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""

_Settings = Mapping[str, Any]


class Runs:
    """Runs by their settings. A repetition (``resume=false``) replaces the run it repeats."""

    def __init__(self, runs: Iterable[RunSummary], compose: Compose) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._runs: dict[tuple[str, int], RunSummary] = {}
        self._measured_more: dict[tuple[str, int], RunSummary] = {}
        self._found: dict[tuple[PlannedRun, int, tuple[str, ...]], RunSummary | None] = {}
        for run in sorted(runs, key=lambda run: (run.finished, run.attempt)):
            settings = settings_with_defaults(run, compose)
            self._runs[digest_of(settings), run.seed] = run
            if settings["mode"].get("before"):
                self._measured_more[digest_of(_without_before(settings)), run.seed] = run

    def find(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> RunSummary | None:
        """Return the planned run, finished or not, or ``None``; ``extra`` overrides all (``backbone=...``).

        A run that was also evaluated before adaptation matches a plan that does not need this.
        """
        key = (planned, seed, tuple(extra))
        if key not in self._found:
            overrides = self.overrides(planned, seed=seed, extra=extra)
            self._found[key] = (
                None if overrides is None else self._made_with(identity_settings(self._compose(overrides)), seed)
            )
        return self._found[key]

    def _made_with(self, settings: _Settings, seed: int) -> RunSummary | None:
        key = (digest_of(settings), seed)
        found, more = self._runs.get(key), self._measured_more.get(key)
        return more if more and (found is None or more.finished > found.finished) else found

    def overrides(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> list[str] | None:
        """Return all overrides of a planned run except the seed; ``None`` until the runs it needs are finished."""
        found = run_overrides(planned, extra, self._compose)
        for need in planned.needs:
            run = self.find(need.run, seed=seed, extra=extra)
            if run is None or not run.finished:
                return None
            found.append(f"{need.setting}={quoted(str(context_file(run, need.context)))}")
        return found


def context_file(run: RunSummary, context: str) -> Path:
    """Path of one of a run's contexts."""
    return run.folder / "contexts" / f"{context}.json"


def settings_with_defaults(run: RunSummary, compose: Compose) -> _Settings:
    """Return the settings of a run, with today's defaults for settings that did not exist when it was made."""
    try:
        return _filled(
            run.identity, identity_settings(compose([f"{group}={getattr(run, group)}" for group in _CHOSEN]))
        )
    except ConfigError:
        return run.identity  # its method or task no longer exists


def _filled(settings: _Settings, usual: _Settings) -> dict[str, Any]:
    """Add missing keys, also in nested parts that build the same class."""
    found = {**usual, **settings}
    for key, part in settings.items():
        other = usual.get(key)
        if isinstance(part, Mapping) and isinstance(other, Mapping) and part.get(_TARGET) == other.get(_TARGET):
            found[key] = _filled(part, other)
    return found


def _without_before(settings: _Settings) -> _Settings:
    return {**settings, "mode": {**settings["mode"], "before": False}}


def deviations(settings: Mapping[str, Any], paper: Mapping[str, Any], source: str) -> Iterator[str]:
    """Yield the settings of a run that differ from the paper's, as overrides.

    ``settings`` come from the run's ``identity.json``, ``paper`` from the experiment with the paper's model.
    ``source`` says whether the run's data is ``real`` or ``sample``.
    """
    yield from _models("backbone", settings["backbone"], paper["backbone"])
    for role in sorted({*settings["roles"], *paper["roles"]}):
        yield from _models(f"roles.{role}", settings["roles"].get(role, {}), paper["roles"].get(role, {}))
    for group in GROUPS:
        ours, theirs = (
            {key: value for key, value in part[group].items() if (group, key) not in _NOT_COMPARED}
            for part in (settings, paper)
        )
        yield from _changes(group, ours, theirs)
    names = (*_TOP, _EMBEDDER) if _uses_embedder(settings["method"]) else _TOP
    yield from (f"{name}={override_value(settings[name])}" for name in names if settings[name] != paper[name])
    if source == "sample":
        yield "sample data"


def _models(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Yield only the name if the model differs, since sampling settings belong to a model."""
    named = [part.get("model") or part.get("name") or "none" for part in (ours, theirs)]
    if named[0] != named[1]:
        yield f"{prefix}.model={override_value(named[0])}"
    else:
        yield from _changes(prefix, ours, theirs)


def _changes(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*ours, *theirs} - {_TARGET, _EMBEDDER}):
        mine, other, name = ours.get(key), theirs.get(key), f"{prefix}.{key}"
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from _changes(name, mine, other)
        elif mine != other:
            yield f"{name}={override_value(mine)}"


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (_EMBEDDER in part or any(map(_uses_embedder, part.values())))
