"""Settings that a run folder holds, checked before anything is built from them: they may choose no code.

The classes of a run are those that the installed configuration names for the options that the run chose. Of the
record itself only values are taken: numbers, plain words, and files that are read as data. Everything else is refused,
and nothing that it names is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ace_bench.core.errors import StoreError
from ace_bench.core.resources import config_folders, options
from ace_bench.core.types import Record
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.planning import Composer

_TARGET = "_target_"
_CHOSEN = ("task", "method", "backbone", "mode", "protocol")
"""Groups whose option a run records."""
_INSTALLED = ("rehearsal", "default_roles", "tracker")
"""Parts that a replay takes as they are installed."""
_BACKBONES = ("backbone", "roles")
"""Groups whose texts say how a server is reached. A replay reaches none."""
_FILES = ("data_dir", "data", "ids", "instruction", "initial", "context", "demonstrations")
"""Settings that may name a file that is read as data."""
_ENDPOINT = ("url", "model", "key_env")
"""How an embedder's endpoint is reached."""
_RIGHTS = ("environment", "confinement")
"""Settings that choose code by a plain word, or let it do more."""
_WORD = re.compile(r"[\w ,|+-]*")


class CodeRefused(StoreError):
    """The settings of a run folder choose code that the installed configuration does not choose."""


def without_foreign_code(config: RunConfig) -> RunConfig:
    """Return recorded settings that may be built; raises ``CodeRefused`` that names the first setting that may not.

    The rehearsal's backbone, the default roles and the trackers are the installed ones.
    """
    installed = _Installed(Composer(config_folders()))
    usual = installed.settings(config)
    settings = {**config.settings, **{group: usual.get(group) for group in _INSTALLED}}
    for path, value in _other_texts(settings, usual):
        if not _is_plain(path, value):
            raise CodeRefused(
                f"its config.yaml sets {'.'.join(path)}={value[:80]}, which the installed configuration does not set "
                "for these options, and which may choose code"
            )
    return msgspec.structs.replace(config, settings=settings)


@dataclass(frozen=True)
class _Installed:
    """The configuration that is composed from the installed files and those of ``--config-dir``."""

    compose: Composer

    def settings(self, config: RunConfig) -> dict[str, Any]:
        """Return the settings of the recorded options, with the agent and the roles' backbones that fit the record."""
        overrides = [f"{group}={self._option(group, config.choices)}" for group in _CHOSEN if group in config.choices]
        usual = dict(self.compose(overrides))
        recorded = config.settings
        roles = recorded.get("roles") or {}
        agent, backbones = recorded.get("agent"), roles if isinstance(roles, Mapping) else {}
        return {
            **usual,
            "agent": usual["agent"] if _same_class(agent, usual["agent"]) else self._part("agent", agent),
            "roles": {role: self._part("backbone", node) for role, node in backbones.items()},
        }

    def _option(self, group: str, choices: Record) -> str:
        """Return the recorded option of a group; raises ``CodeRefused`` if it is not installed."""
        if (name := choices[group]) not in options(group, config_folders()):
            raise CodeRefused(f"{group}={str(name)[:80]} is not an installed option")
        return str(name)

    def _part(self, group: str, node: Any) -> Any:
        """Return the first option of a group that builds the class of a recorded part, ``None`` without one."""
        parts = (self.compose([f"{group}={name}"])[group] for name in options(group, config_folders()))
        return next((part for part in parts if _same_class(part, node)), None)


def _same_class(recorded: Any, installed: Any) -> bool:
    return (
        isinstance(recorded, Mapping)
        and isinstance(installed, Mapping)
        and recorded.get(_TARGET) == installed.get(_TARGET)
    )


def _other_texts(recorded: Any, usual: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and value of the texts that differ from the installed ones."""
    if recorded == usual:
        return
    if isinstance(recorded, Mapping):
        for key, part in recorded.items():
            yield from _other_texts(part, usual.get(key) if isinstance(usual, Mapping) else None, (*path, str(key)))
    elif isinstance(recorded, list):
        for part in recorded:
            yield from _other_texts(part, None, path)
    elif isinstance(recorded, str):
        yield path, recorded


def _is_plain(path: tuple[str, ...], value: str) -> bool:
    """Whether every value of this text setting is safe, as it can choose neither code nor rights of code."""
    if path[-1] == _TARGET or path[-1] in _RIGHTS:
        return False
    if path[0] in _BACKBONES or (len(path) == 1 and path[0] != "embedder"):
        return True
    if "embedder" in path and path[-1] in _ENDPOINT:
        return True
    if not {*path}.isdisjoint(_FILES):
        return "://" not in value
    # A word that names a file or folder of the current one may be a model with code of its own.
    return bool(_WORD.fullmatch(value)) and not os.path.exists(value or "-")
