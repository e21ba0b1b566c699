"""Planned runs: their overrides with the settings that a user gives, and the runs on disk that fulfil them.

A setting is any override of ``run.py`` (``limit=20``), or one for the runs of a method, a task, or a row that names a
backbone for a role (``gepa:method.max_metric_calls=20``, ``appworld:limit=5``, ``gpt_5_1:roles.reflector.model=x``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ace_bench.report.records import RunSummary

Compose = Callable[[Sequence[str]], Mapping[str, Any]]
"""Turns overrides into the whole configuration, as ``run.py`` does."""

Settings = Mapping[str, Any]

TESTED = "tested"
"""Name of the file with the context that a run was tested with."""
ROLE_BACKBONE = "backbone@"
"""Start of an override that gives a role a backbone of its own."""

_FOR_SOME = re.compile(r"(?P<only>[a-z_]\w*):(?P<override>[^=]+=.*)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_][\w./@+-]*")
_WORDS = ("null", "true", "false", "nan", "inf")
"""Words that the grammar of overrides does not read as text."""
_EMBEDDED = "backbone=embedded"
_CHOSEN = ("method", "mode", "task", "backbone")
_TOP = ("labels", "limit", "prompts")
_OPTIONAL = ("sampling", "unreadable_replies", "repeat_calls")
"""Settings that are in an identity only where they are not at their default."""
_NOT_COMPARED = {f"{group}.{name}" for group, name in CONTEXT_FILES} | {"mode.before"}
"""Files with contexts of other runs, and the evaluation before adaptation, which does not affect other results."""
_DATA = ("data_dir", "sample_data", "data", "instruction")
"""Settings of a task that hold or name data or a text, which no digest of settings has."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run by its overrides, without backbone and seed. ``needs`` are settings that name a file of another run."""

    overrides: tuple[str, ...]
    needs: tuple[Need, ...] = ()

    def option(self, group: str) -> str:
        """Return its option of a group, such as its ``method``."""
        return next((value for key, value in map(_key_and_value, self.overrides) if key == group), "")

    @property
    def kind(self) -> tuple[str, str, str]:
        """Its task, method and mode."""
        return self.option("task"), self.option("method"), self.option("mode")

    @property
    def names(self) -> tuple[str, ...]:
        """What a setting can name to be for it: its method, its task, and the backbones of its roles."""
        roles = (value for key, value in map(_key_and_value, self.overrides) if key.startswith(ROLE_BACKBONE))
        return (self.option("method"), self.option("task"), *roles)


@dataclass(frozen=True, kw_only=True)
class Need:
    """A setting that names a context of another run: ``mode.context`` or ``method.initial``."""

    setting: str
    run: PlannedRun
    context: str = TESTED


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An override that applies to the runs of ``only`` one method, task or backbone of a role; "" means all runs."""

    only: str
    override: str

    def __str__(self) -> str:
        return f"{self.only}:{self.override}" if self.only else self.override

    @property
    def path(self) -> tuple[str, ...]:
        """Its path in the configuration: that of ``backbone@roles.reflector=x`` is ``roles.reflector``."""
        key = key_of(self.override)
        return tuple(key.rpartition("@")[2].split("."))

    @property
    def value(self) -> Any:
        """Its value; raises ``ConfigError`` if it cannot be parsed."""
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.errors import HydraException

        try:
            return OverridesParser.create().parse_override(self.override).value()
        except HydraException as error:
            raise ConfigError(f"{self} cannot be parsed: {error}") from error

    @property
    def chooses(self) -> bool:
        """Whether it may choose an option of a group; these come before the group's settings."""
        return "." not in key_of(self.override).partition("@")[0]

    def is_for(self, names: Collection[str]) -> bool:
        """Whether it applies to a run with these names (``PlannedRun.names``), which may still lack the setting."""
        return not self.only or self.only in names


def read_setting(text: str) -> Setting:
    """Split a setting into the method, task or backbone that it is for, and the override."""
    found = _FOR_SOME.fullmatch(text)
    return Setting(only=found["only"], override=found["override"]) if found else Setting(only="", override=text)


def settings_for(names: Collection[str], extra: Sequence[str]) -> list[Setting]:
    """Return the settings for a run with these names: first those for all, which others override."""
    found = [setting for setting in map(read_setting, extra) if setting.is_for(names)]
    return sorted(found, key=lambda setting: bool(setting.only))


def key_of(override: str) -> str:
    """Return the key that an override sets."""
    return override.partition("=")[0].lstrip("+")


def run_overrides(planned: PlannedRun, extra: Sequence[str], compose: Compose) -> list[str]:
    """Return the overrides of a planned run and the ``extra`` settings that exist in it, the last one of each key.

    Settings for its method or task override those for all. With ``backbone=embedded`` in ``extra``, the embedded reader
    answers for roles, too, to which the plan gives backbones of their own.
    """
    plan = planned.overrides
    if _EMBEDDED in extra:
        plan = tuple(override for override in plan if not override.startswith(ROLE_BACKBONE))
    given = _given(planned, extra)
    together = _last_of_each([*plan, *given])
    if fits(compose, together):
        return together
    taken = [*plan]
    for override in given:
        if fits(compose, _last_of_each([*taken, override])):
            taken.append(override)
    return _last_of_each(taken)


def left_out(planned: PlannedRun, extra: Sequence[str], compose: Compose) -> list[str]:
    """Return those ``extra`` settings that apply to a planned run's method or task but do not exist in the run."""
    taken = run_overrides(planned, extra, compose)
    return [override for override in _last_of_each(_given(planned, extra)) if override not in taken]


def fits(compose: Compose, overrides: Sequence[str]) -> bool:
    """Whether a configuration can be composed from the overrides."""
    try:
        return bool(compose(overrides))
    except ConfigError:
        return False


def override_value(value: Any) -> str:
    """Format a value for an override."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {override_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(override_value, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and (not _PLAIN.fullmatch(value) or value.lower() in _WORDS):
        return quoted(value)
    return str(value)


def quoted(text: str) -> str:
    """Quote a text for an override."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


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
        found = changed_settings(settings[group], paper[group], group)
        yield from (_override(*change) for change in found if _is_compared(change[0]))
    names = (*_TOP, EMBEDDER) if _uses_embedder(settings["method"]) else _TOP
    for name in (*names, *_OPTIONAL):
        if settings.get(name) != paper.get(name):
            yield _override(name, settings.get(name))
    if source == "sample":
        yield "sample data"


def _given(planned: PlannedRun, extra: Sequence[str]) -> list[str]:
    """Return the overrides for a run: choices of groups first, since their settings need them."""
    settings = settings_for(planned.names, extra)
    return [setting.override for setting in sorted(settings, key=lambda setting: not setting.chooses)]


def _key_and_value(override: str) -> tuple[str, str]:
    return key_of(override), override.partition("=")[2]


def _last_of_each(overrides: Sequence[str]) -> list[str]:
    by_key: dict[str, str] = {}
    for override in overrides:
        by_key.pop(key_of(override), None)
        by_key[key_of(override)] = override
    return list(by_key.values())


def _override(path: str, value: Any) -> str:
    return f"{path}={override_value(value)}"


def _is_compared(path: str) -> bool:
    """Whether a setting is one of the run itself; the embedder is compared once, at the top."""
    return path not in _NOT_COMPARED and EMBEDDER not in path.split(".")


def _uses_embedder(part: Any) -> bool:
    return isinstance(part, Mapping) and (EMBEDDER in part or any(map(_uses_embedder, part.values())))
