"""Settings as a user gives them for several runs: which run takes which, and what an override is about.

A setting is one of ``run.py``'s (``limit=20``), or one for the runs of a method (``gepa:method.max_metric_calls=20``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.report.experiments import PlannedRun

Compose = Callable[[Sequence[str]], Mapping[str, Any]]
"""From overrides to the whole configuration, as ``run.py`` would resolve them."""

_FOR_METHOD = re.compile(r"(?P<method>[a-z_]\w*):(?P<override>[^=]+=.*)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_][\w./@+-]*")
_WORDS = ("null", "true", "false", "nan", "inf")
"""What the grammar of overrides takes for more than a word."""
_EMBEDDED = "backbone=embedded"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An override, and the ``method`` whose runs it is for; "" where it is for all runs."""

    method: str
    override: str

    def __str__(self) -> str:
        return f"{self.method}:{self.override}" if self.method else self.override

    @property
    def path(self) -> tuple[str, ...]:
        """Where in a configuration it is: ``backbone@roles.reflector=x`` is at ``roles.reflector``."""
        key = key_of(self.override)
        return tuple(key.rpartition("@")[2].split("."))

    @property
    def value(self) -> Any:
        """What it sets; raises ``ConfigError`` where that cannot be read."""
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.errors import HydraException

        try:
            return OverridesParser.create().parse_override(self.override).value()
        except HydraException as error:
            raise ConfigError(f"{self} cannot be read: {error}") from error

    @property
    def chooses(self) -> bool:
        """Whether it may choose an option of a group, which its settings need."""
        return "." not in key_of(self.override).partition("@")[0]


def read_setting(text: str) -> Setting:
    """Tell the method that a setting names from the override."""
    found = _FOR_METHOD.fullmatch(text)
    return Setting(method=found["method"], override=found["override"]) if found else Setting(method="", override=text)


def key_of(override: str) -> str:
    """Return what an override sets."""
    return override.partition("=")[0].lstrip("+")


def method_of(planned: PlannedRun) -> str:
    """Return the method of a planned run."""
    return next(override.partition("=")[2] for override in planned.overrides if key_of(override) == "method")


def run_overrides(planned: PlannedRun, extra: Sequence[str], compose: Compose) -> list[str]:
    """Return the overrides of a planned run with those of the ``extra`` settings that it has, the last of each key.

    Settings for its method come before those for all. With ``backbone=embedded`` in ``extra``, roles that the plan
    gives another backbone are embedded, too.
    """
    plan = planned.overrides
    if _EMBEDDED in extra:
        plan = tuple(_embedded(override) if override.startswith("backbone@") else override for override in plan)
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
    """Return those overrides of ``extra`` settings for a planned run that it has not."""
    taken = run_overrides(planned, extra, compose)
    return [override for override in _last_of_each(_given(planned, extra)) if override not in taken]


def fits(compose: Compose, overrides: Sequence[str]) -> bool:
    """Whether overrides go together."""
    try:
        return bool(compose(overrides))
    except ConfigError:
        return False


def written(value: Any) -> str:
    """Write a value so that an override takes it as it stands."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and (not _PLAIN.fullmatch(value) or value.lower() in _WORDS):
        return quoted(value)
    return str(value)


def quoted(text: str) -> str:
    """Write a text so that Hydra takes it as it stands, whatever is in it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _given(planned: PlannedRun, extra: Sequence[str]) -> list[str]:
    """Return the overrides for a run: choices of groups first, as their settings need them; then those for all."""
    settings = [setting for setting in map(read_setting, extra) if setting.method in ("", method_of(planned))]
    settings.sort(key=lambda setting: (not setting.chooses, bool(setting.method)))
    return [setting.override for setting in settings]


def _last_of_each(overrides: Sequence[str]) -> list[str]:
    by_key: dict[str, str] = {}
    for override in overrides:
        by_key.pop(key_of(override), None)
        by_key[key_of(override)] = override
    return list(by_key.values())


def _embedded(override: str) -> str:
    return override.partition("=")[0] + "=embedded"
