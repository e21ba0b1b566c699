"""Why the program would refuse a run, found out before anything is started or sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError, DataError
from ace_bench.runners.assemble import assemble
from ace_bench.runners.preflight import check_beginning

_CHOICES = ("task", "method", "backbone", "mode")


def chosen_options(overrides: Sequence[str]) -> dict[str, str]:
    """Return the options that name a run: task, method, backbone and mode."""
    chosen = dict(override.split("=", 1) for override in overrides)
    return {group: chosen[group] for group in _CHOICES}


class Refusals:
    """Builds runs and begins them in a temporary folder, as ``ace-bench run`` does before its first call."""

    def __init__(self, compose: Callable[[Sequence[str]], Mapping[str, Any]]) -> None:
        """``compose`` turns overrides into a configuration."""
        self._compose = compose
        self._reason = cache(self._checked)

    def __call__(self, overrides: Sequence[str]) -> str:
        """Return the reason why a run with these overrides is refused, "" if it is not.

        Missing data is no reason: the run itself says how to get it.
        """
        return self._reason(tuple(overrides))

    def _checked(self, overrides: tuple[str, ...]) -> str:
        try:
            config = OmegaConf.create(dict(self._compose(overrides)))
            check_beginning(assemble(config, chosen_options(overrides)))
        except ConfigError as error:
            return str(error)
        except DataError:
            return ""
        return ""
