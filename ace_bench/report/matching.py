"""Find the run on disk for a planned run, and say how it departs from the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import (
    CONTEXT_FILES,
    EMBEDDER,
    GROUPS,
    changed_settings,
    filled_settings,
    identity_settings,
    settings_digest,
)
from ace_bench.report.experiments import PlannedRun
from ace_bench.report.overrides import Compose, override_value, quoted, run_overrides
from ace_bench.report.records import RunSummary

_CHOSEN = ("method", "mode", "task", "backbone")
_TOP = ("labels", "limit", "prompts")
_NOT_COMPARED = {f"{group}.{name}" for group, name in CONTEXT_FILES} | {"mode.before"}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""

Settings = Mapping[str, Any]


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
            self._runs[settings_digest(settings), run.seed] = run
            if settings["mode"].get("before"):
                self._measured_more[settings_digest(settings, before=False), run.seed] = run

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

    def _made_with(self, settings: Settings, seed: int) -> RunSummary | None:
        key = (settings_digest(settings), seed)
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


def settings_with_defaults(run: RunSummary, compose: Compose) -> Settings:
    """Return the settings of a run, with today's defaults for settings that did not exist when it was made."""
    try:
        usual = identity_settings(compose([f"{group}={getattr(run, group)}" for group in _CHOSEN]))
    except ConfigError:
        return run.identity  # its method or task no longer exists
    return filled_settings(run.identity, usual)


def deviations(settings: Settings, paper: Settings, source: str) -> Iterator[str]:
    """Yield the settings of a run that can change an answer and differ from the paper's, as overrides.

    ``settings`` come from the run's ``identity.json``, ``paper`` from the experiment with the paper's model.
    ``source`` says whether the run's data is ``real`` or ``sample``. Sampling settings belong to a model: of another
    model only the name counts.
    """
    backbones = [("backbone", settings["backbone"], paper["backbone"])]
    roles = sorted({*settings["roles"], *paper["roles"]})
    backbones += [(f"roles.{role}", settings["roles"].get(role, {}), paper["roles"].get(role, {})) for role in roles]
    for place, ours, theirs in backbones:
        model, other = (part.get("model") or part.get("name") or "none" for part in (ours, theirs))
        found = changed_settings(ours, theirs, place) if model == other else [(f"{place}.model", model)]
        yield from (_override(*change) for change in found)
    for group in GROUPS:
        found = changed_settings(settings[group], paper[group], group)
        yield from (_override(*change) for change in found if _is_compared(change[0]))
    names = (*_TOP, EMBEDDER) if _uses_embedder(settings["method"]) else _TOP
    yield from (_override(name, settings[name]) for name in names if settings[name] != paper[name])
    if source == "sample":
        yield "sample data"


def _override(path: str, value: Any) -> str:
    return f"{path}={override_value(value)}"


def _is_compared(path: str) -> bool:
    """Whether a setting is one of the run itself; the embedder is compared once, at the top."""
    return path not in _NOT_COMPARED and EMBEDDER not in path.split(".")


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (EMBEDDER in part or any(map(_uses_embedder, part.values())))
