"""Chooses runs by their settings, as command lines and notebooks name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ace_bench.core.errors import ConfigError
from ace_bench.report.differences import all_settings, value_text
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.pivot_names import setting_path

R = TypeVar("R", bound=RunSummary)


def with_settings(runs: Iterable[R], conditions: Iterable[str]) -> list[R]:
    """Return the runs that have all settings, each ``KEY=VALUE[,VALUE]`` with a path or its last part as the key.

    Raises ``ConfigError`` if no run is left, or a setting is unknown.
    """
    chosen = [*runs]
    left = [*zip(chosen, all_settings(chosen), strict=True)]
    for condition in conditions:
        key, _, values = condition.partition("=")
        path = setting_path(key, [settings for _, settings in left])
        known = list(dict.fromkeys(value_text(settings[path]) for _, settings in left if path in settings))
        left = [(run, own) for run, own in left if path in own and value_text(own[path]) in words(values, condition)]
        if not left:
            raise ConfigError(f"no run has {condition}; there are {key}={','.join(known)}")
    return [run for run, _ in left]


def words(text: str, option: str) -> tuple[str, ...]:
    """Split the value of an option, a list separated by commas; raises ``ConfigError`` if it is empty."""
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise ConfigError(f"{option} names nothing; give at least one name, or leave the option out")
    if twice := next((word for word in found if found.count(word) > 1), None):
        raise ConfigError(f"{option} names {twice} twice; name it once")
    return found
