"""Planned runs: their overrides with the settings that a user gives.

A setting is any override of ``run.py`` (``limit=20``), or one for the runs of a method, a task, or a row that names a
backbone for a role (``gepa:method.max_metric_calls=20``, ``appworld:limit=5``, ``gpt_5_1:roles.reflector.model=x``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ace_bench.core.errors import ConfigError

Compose = Callable[[Sequence[str]], Mapping[str, Any]]
"""Turns overrides into the whole configuration, as ``run.py`` does."""

Settings = Mapping[str, Any]

TESTED = "tested"
"""Name of the file with the context that a run was tested with."""
ROLE_BACKBONE = "backbone@"
"""Start of an override that gives a role a backbone of its own."""

_FOR_SOME = re.compile(r"(?P<only>[a-z_]\w*):(?P<override>[^=]+=.*)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_][\w./@+-]*", re.ASCII)
_INTERPOLATION = re.compile(r"(\\*)\$\{")
_WORDS = ("null", "true", "false", "nan", "inf")
"""Words that the grammar of overrides does not read as text."""
_EMBEDDED = "backbone=embedded"


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run by its overrides, without backbone and seed. ``needs`` are settings that name a file of another run."""

    overrides: tuple[str, ...]
    needs: tuple[Need, ...] = ()

    def option(self, group: str) -> str:
        """Return its option of a group, such as its ``method``."""
        return next((value for key, value in map(_key_and_value, self.overrides) if key == group), "")

    @cached_property
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
        """Its path in the configuration: ``roles.reflector`` for ``backbone@roles.reflector=x``."""
        key = key_of(self.override)
        return tuple(key.rpartition("@")[2].split("."))

    @property
    def value(self) -> Any:
        """Its value. Raises ``ConfigError`` if it cannot be parsed."""
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.errors import HydraException

        try:
            return OverridesParser.create().parse_override(self.override).value()
        except HydraException as error:
            raise ConfigError(f"{self} cannot be parsed: {error}") from error

    @property
    def chooses(self) -> bool:
        """Whether it may choose an option of a group. These come before the group's settings."""
        return "." not in key_of(self.override).partition("@")[0]

    def is_for(self, names: Collection[str]) -> bool:
        """Whether it applies to a run with these names (``PlannedRun.names``), which may still lack the setting."""
        return not self.only or self.only in names


def read_setting(text: str) -> Setting:
    """Split a setting into the method, task or backbone that it is for, and the override."""
    match = _FOR_SOME.fullmatch(text)
    return Setting(only=match["only"], override=match["override"]) if match else Setting(only="", override=text)


def settings_for(names: Collection[str], extra: Sequence[str]) -> list[Setting]:
    """Return the settings for a run with these names: first those for all, which others override."""
    settings = [setting for setting in map(read_setting, extra) if setting.is_for(names)]
    return sorted(settings, key=lambda setting: bool(setting.only))


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
    user_overrides = _given_overrides(planned, extra)
    combined = _last_of_each([*plan, *user_overrides])
    if fits(compose, combined):
        return combined
    taken = [*plan]
    for override in user_overrides:
        if fits(compose, _last_of_each([*taken, override])):
            taken.append(override)
    return _last_of_each(taken)


def left_out(planned: PlannedRun, extra: Sequence[str], compose: Compose) -> list[str]:
    """Return those ``extra`` settings that apply to a planned run's method or task but do not exist in the run."""
    taken = run_overrides(planned, extra, compose)
    return [override for override in _last_of_each(_given_overrides(planned, extra)) if override not in taken]


def fits(compose: Compose, overrides: Sequence[str]) -> bool:
    """Whether a configuration can be composed from the overrides."""
    try:
        return bool(compose(overrides))
    except ConfigError:
        return False


def override_value(value: Any) -> str:
    """Format a value for an override."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_escape_key(str(key))}: {override_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(override_value, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and (not _PLAIN.fullmatch(value) or value.lower() in _WORDS):
        return quote(value)
    return str(value)


def quote(text: str) -> str:
    """Quote a text for an override: Hydra reads backslashes as they are, but for those in front of a quote.

    An interpolation stays text, because values may be those that a run folder holds.
    """
    text = _INTERPOLATION.sub(lambda match: match[1] * 2 + "\\${", text)
    return "'" + re.sub(r"(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text) + "'"


def _escape_key(key: str) -> str:
    return re.sub(r"([\\()\[\]{}:=,\s])", r"\\\1", key)


def _given_overrides(planned: PlannedRun, extra: Sequence[str]) -> list[str]:
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
