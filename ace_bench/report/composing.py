"""Configurations by overrides, as ``run.py`` composes them, quickly for many of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ace_bench.core.errors import ConfigError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
_Config = dict[str, Any]
_Settings = Sequence["Override"]


class Composer:
    """Composes each choice of groups once; settings are put on top of it.

    Hydra takes a tenth of a second for each configuration, so it is asked only for what plain files do not tell.
    """

    def __init__(self, configs: Path) -> None:
        """``configs`` is the folder that holds ``config.yaml`` and the groups."""
        self._configs = configs
        self._parsed: dict[str, Override] = {}
        self._composed: dict[tuple[str, ...], _Config] = {}

    def __call__(self, overrides: Sequence[str]) -> Mapping[str, Any]:
        """Return the whole configuration, resolved; raises ``ConfigError`` for an override that does not fit."""
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        try:
            parsed = [self._override(override) for override in overrides]
            groups = [override for override in parsed if (self._configs / override.key_or_group).is_dir()]
            settings = [override for override in parsed if override not in groups]
            config = self._choice(tuple(str(override.input_line) for override in groups))
            try:
                return _resolved(_with(config, settings))
            except _NotPlain:
                return _by_omegaconf(config, settings)
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"{' '.join(overrides)} cannot be composed: {error}") from error

    def _override(self, text: str) -> Override:
        from hydra.core.override_parser.overrides_parser import OverridesParser

        if text not in self._parsed:
            self._parsed[text] = OverridesParser.create().parse_override(text)
        return self._parsed[text]

    def _choice(self, groups: tuple[str, ...]) -> _Config:
        """Return the configuration of some options, not resolved."""
        if groups not in self._composed:
            found = self._swapped(groups) or self._joined(groups)
            self._composed[groups] = found or _by_hydra(self._configs, groups)
        return self._composed[groups]

    def _swapped(self, groups: tuple[str, ...]) -> _Config | None:
        """Put an option in its group's place, if neither it nor the usual one is more than its own file."""
        if len(groups) != 1:
            return None
        group, _, option = groups[0].partition("=")
        own, usual = self._alone(group, option), self._alone(group, self._usual.get(group, ""))
        return None if own is None or usual is None else {**self._choice(()), group: own}

    def _alone(self, group: str, option: str) -> _Config | None:
        file = self._configs / group / f"{option}.yaml"
        if not file.is_file() or "@package" in file.read_text():
            return None
        found = _read(file)
        return None if "defaults" in found else found

    @cached_property
    def _usual(self) -> dict[str, str]:
        """The option of each group that goes without saying."""
        defaults = _read(self._configs / "config.yaml")["defaults"]
        return {group: str(option) for entry in defaults if entry != "_self_" for group, option in entry.items()}

    def _joined(self, groups: tuple[str, ...]) -> _Config | None:
        """Join choices of one group each, so that Hydra composes few; ``None`` where they do not add up."""
        if len(groups) < 2:
            return None
        usual, joined = self._choice(()), dict(self._choice(()))
        for group in groups:
            choice = self._choice((group,))
            if not choice.keys() >= usual.keys():
                return None
            for key, value in choice.items():
                if value != usual.get(key):
                    if joined.get(key) not in (usual.get(key), value):
                        return None
                    joined[key] = value
        return joined


class _NotPlain(Exception):
    """What takes OmegaConf: new keys, values with parts, interpolations of more than a setting."""


def _with(config: _Config, settings: _Settings) -> _Config:
    """Give settings that are there other values; the rest is shared with ``config``."""
    found = dict(config)
    for override in settings:
        value = override.value()
        if override.type is None or override.type.name != "CHANGE" or not isinstance(value, str | float | int | None):
            raise _NotPlain
        *path, last = override.key_or_group.split(".")
        node = found
        for name in path:
            if not isinstance(node.get(name), dict):
                raise _NotPlain
            node[name] = node = dict(node[name])
        if last not in node or isinstance(node[last], dict | list):
            raise _NotPlain
        node[last] = value
    return found


def _resolved(config: _Config) -> _Config:
    """Put settings in the place of their names."""

    def named(name: str) -> Any:
        found: Any = config
        for key in name.split("."):
            if not isinstance(found, dict) or key not in found:
                raise _NotPlain
            found = found[key]
        return resolve(found)

    def word(match: re.Match[str]) -> str:
        found = named(match[1])
        if not isinstance(found, str):
            raise _NotPlain
        return found

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: resolve(part) for key, part in value.items()}
        if isinstance(value, list):
            return [resolve(part) for part in value]
        if not isinstance(value, str) or "${" not in value:
            return value
        if "\\" in value or "${" in _INTERPOLATION.sub("", value):
            raise _NotPlain
        whole = _INTERPOLATION.fullmatch(value)
        return named(whole[1]) if whole else _INTERPOLATION.sub(word, value)

    return {key: resolve(part) for key, part in config.items()}


def _by_omegaconf(config: _Config, settings: _Settings) -> _Config:
    from omegaconf import OmegaConf

    found = OmegaConf.create(config)
    OmegaConf.set_struct(found, True)  # as Hydra does: a setting that is not there is a mistake
    for override in settings:
        OmegaConf.update(found, override.key_or_group, override.value(), force_add=override.is_add())
    return cast(_Config, OmegaConf.to_container(found, resolve=True))


def _by_hydra(configs: Path, groups: Sequence[str]) -> _Config:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        return cast(_Config, OmegaConf.to_container(compose("config", overrides=list(groups))))


def _read(file: Path) -> _Config:
    from omegaconf import OmegaConf

    return cast(_Config, OmegaConf.to_container(OmegaConf.load(file)))
