"""Runs on disk beside plans: which run fulfils a plan, and in which settings a run differs from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import (
    CONTEXT_FILES,
    EMBEDDER,
    GROUPS,
    changed_settings,
    fill_settings,
    identity_settings,
    settings_digest,
)
from ace_bench.report.planned import Compose, PlannedRun, Settings, key_of, override_value, quoted, run_overrides
from ace_bench.report.records import RunSummary

_CHOSEN = ("method", "mode", "task", "backbone")
_TOP = ("labels", "limit", "prompts")
_OPTIONAL = ("sampling", "unreadable_replies", "repeat_calls")
"""Settings that are in an identity only where they are not at their default."""
_NOT_COMPARED = {f"{group}.{name}" for group, name in CONTEXT_FILES} | {"mode.before"}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""
_DATA = ("data_dir", "sample_data", "data", "instruction")
"""Settings of a task that hold or name data or a text, which no digest of settings has."""


class Runs:
    """Runs by their settings and data. A repetition (``resume=false``) replaces the run it repeats."""

    def __init__(self, runs: Iterable[RunSummary], compose: Compose) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._found: dict[tuple[PlannedRun, int, tuple[str, ...]], RunSummary | None] = {}
        known = list(runs)
        settings = {run.folder: settings_with_defaults(run, compose) for run in known}
        more = [run for run in known if settings[run.folder]["mode"].get("before")]
        self._runs = _by_settings(known, lambda run: settings_digest(settings[run.folder]))
        self._measured_more = _by_settings(more, lambda run: settings_digest(settings[run.folder], before=False))

    def find(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> RunSummary | None:
        """Return the planned run, finished or not, or ``None``; ``extra`` overrides all (``backbone=...``).

        A run that was also evaluated before adaptation matches a plan that does not need this.
        """
        key = (planned, seed, tuple(extra))
        if key not in self._found:
            overrides = self.overrides(planned, seed=seed, extra=extra)
            self._found[key] = None if overrides is None else self._made_with(overrides, seed)
        return self._found[key]

    def _made_with(self, overrides: Sequence[str], seed: int) -> RunSummary | None:
        config = self._compose(overrides)
        key = (settings_digest(identity_settings(config)), seed)
        runs = (
            run
            for run in reversed([*self._measured_more.get(key, ()), *self._runs.get(key, ())])
            if _source_fits(run, config["task"]["source"]) and not any(other_data(run, overrides, config))
        )
        return max(runs, key=lambda run: run.finished, default=None)

    def overrides(self, planned: PlannedRun, *, seed: int, extra: Sequence[str] = ()) -> list[str] | None:
        """Return all overrides of a planned run except the seed; ``None`` until the runs it needs are finished."""
        found = run_overrides(planned, extra, self._compose)
        for need in planned.needs:
            run = self.find(need.run, seed=seed, extra=extra)
            if run is None or not run.finished:
                return None
            found.append(f"{need.setting}={quoted(str(run.context_file(need.context)))}")
        return found


def _by_settings(
    runs: Iterable[RunSummary], digest: Callable[[RunSummary], str]
) -> Mapping[tuple[str, int], Sequence[RunSummary]]:
    """Return the runs with the same settings and seed, whatever their data; those that count most come last."""
    found: dict[tuple[str, int], list[RunSummary]] = {}
    for run in sorted(runs, key=lambda run: (run.finished, run.attempt)):
        found.setdefault((digest(run), run.seed), []).append(run)
    return found


def other_data(run: RunSummary, overrides: Sequence[str], config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the run's settings of data that differ from those that a plan's overrides name."""
    for name in _DATA:
        found = run.settings["task"].get(name)
        if f"task.{name}" in map(key_of, overrides) and found != config["task"][name]:
            yield f"task.{name}={found}"


def _source_fits(run: RunSummary, source: str) -> bool:
    """Whether a run's data, real or sample, is what ``task.source`` asks for."""
    if source == "auto":
        return run.simulated or run.source == "real"
    return run.source == source


def settings_with_defaults(run: RunSummary, compose: Compose) -> Settings:
    """Return the settings of a run, with today's defaults for settings that did not exist when it was made."""
    try:
        usual = identity_settings(compose([f"{group}={getattr(run, group)}" for group in _CHOSEN]))
    except ConfigError:
        return run.identity  # its method or task no longer exists
    # A server is named only where the run started it, which is for the run to say.
    backbone = {name: value for name, value in usual["backbone"].items() if name != "server"}
    return fill_settings(run.identity, {**usual, "backbone": backbone})


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
        for path, value in changed_settings(settings[group], paper[group], group):
            if path not in _NOT_COMPARED and EMBEDDER not in path.split("."):  # it is compared once, at the top
                yield _override(path, value)
    names = (*_TOP, EMBEDDER) if _uses_embedder(settings["method"]) else _TOP
    for name in (*names, *_OPTIONAL):
        if settings.get(name) != paper.get(name):
            yield _override(name, settings.get(name))
    if source == "sample":
        yield "sample data"


def _override(path: str, value: Any) -> str:
    return f"{path}={override_value(value)}"


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (EMBEDDER in part or any(map(_uses_embedder, part.values())))
