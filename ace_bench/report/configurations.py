"""Configurations of planned runs, and settings of finished ones: each is put together once for all tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.identity import fill_settings, identity_settings, without_fixed
from ace_bench.report.planned import Compose, PlannedRun, Settings, fits, run_overrides
from ace_bench.report.records import RunSummary

_CHOSEN = ("method", "mode", "task", "backbone")


class Configurations:
    """Composes plans by ``compose``, which keeps each configuration itself, and remembers what follows from them."""

    def __init__(self, compose: Compose) -> None:
        self.compose = compose
        self._overrides = cache(lambda planned, extra: tuple(run_overrides(planned, extra, compose)))
        self._identity = cache(self._identified)
        self._runs: dict[Path, Settings] = {}

    def __call__(self, overrides: Sequence[str]) -> Mapping[str, Any]:
        """Return the whole configuration. Raises ``ConfigError`` for an override that does not fit."""
        return self.compose(overrides)

    def fit(self, overrides: Sequence[str]) -> bool:
        """Whether a configuration can be composed from the overrides."""
        return fits(self.compose, overrides)

    def overrides(self, planned: PlannedRun, extra: Sequence[str]) -> list[str]:
        """Return the overrides of a planned run and the ``extra`` settings that exist in it (``run_overrides``)."""
        return [*self._overrides(planned, tuple(extra))]

    def identity(self, overrides: Sequence[str]) -> Settings:
        """Return the settings that can change an answer. Raises ``ConfigError``."""
        return self._identity(tuple(overrides))

    def _identified(self, overrides: tuple[str, ...]) -> Settings:
        return identity_settings(self.compose(overrides))

    def of_run(self, run: RunSummary) -> Settings:
        """Return the settings of a run, with today's defaults for settings that did not exist when it was made."""
        if run.folder not in self._runs:
            self._runs[run.folder] = self._filled(run)
        return self._runs[run.folder]

    def _filled(self, run: RunSummary) -> Settings:
        try:
            usual = self.identity([f"{group}={getattr(run, group)}" for group in _CHOSEN])
        except ConfigError:
            return run.identity  # its method or task no longer exists
        # A server is named only where the run started it, which is for the run to say.
        backbone = {name: value for name, value in usual["backbone"].items() if name != "server"}
        return fill_settings(without_fixed(_recorded_settings(run), usual), {**usual, "backbone": backbone})


def _recorded_settings(run: RunSummary) -> Settings:
    """Return the settings in a run's identity. An older version left out some that its configuration holds."""
    if not run.older:
        return run.identity
    try:
        return fill_settings(run.identity, identity_settings(run.settings))
    except (StoreError, LookupError):
        return run.identity
