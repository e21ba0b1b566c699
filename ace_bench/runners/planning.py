"""Configurations of many runs, composed by Hydra as ``run.py`` composes one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from pickle import dumps, loads
from typing import Any, cast

import msgspec
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.defaults_list import create_defaults_list
from hydra.core.default_element import GroupDefault, ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, FileUnwritable
from ace_bench.core.resources import reading_config
from ace_bench.runners.composing import (
    RunConfig,
    digest_of_configs,
    keep_composed,
    read_composed,
    settle,
    with_commit_apart,
)
from ace_bench.store.files import cache_folder, read_sealed, write_sealed

_HYDRA = "hydra"
_FORM = "configuration and choices"
_RUN = "settings without text"
"""What the cache holds of choices and of runs. Changing this text makes older files unreadable."""


class Composer:
    """Composes configurations from files that are parsed once, without Hydra's own settings.

    ``hydra.compose`` parses all files again for every configuration, which takes five times as long for the paper's
    80 plans. Each configuration is composed once, and the next command reads it from a cache. Do not change a
    configuration that is returned.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        """``folders`` are searched in order; the first one holds ``config.yaml``."""
        self._folders = folders
        version.setbase("1.3")
        Plugins.instance()  # registers the reader of ``file://``
        path = ConfigSearchPathImpl()
        for folder in folders:
            path.append("ace_bench", f"file://{folder.resolve()}")
        path.append("schema", "structured://")
        self._loader = _Loader(path)
        self._cache = cache_folder("plans") / digest_of([_FORM, digest_of_configs(folders)])
        parser = OverridesParser.create()
        self._parse = cache(lambda override: parser.parse_overrides([override])[0])
        self._is_group = cache(self._loader.repository.group_exists)
        self._places = cache(self._list_places)
        self._choose = cache(self._compose_choices)
        self._compose = cache(self._compose_run)

    def __call__(self, overrides: Sequence[str]) -> Mapping[str, Any]:
        """Return the whole configuration, resolved; raises ``ConfigError`` for an override that does not fit."""
        return self.run(overrides).settings

    def run(self, overrides: Sequence[str]) -> RunConfig:
        """Return the configuration of a run; raises ``ConfigError`` for an override that does not fit."""
        return self._compose(tuple(overrides))

    def places(self, choices: Sequence[str]) -> Sequence[str]:
        """Return the places for a second option of a group, as ``group@place``; raises what Hydra raises."""
        return self._places(tuple(choices))

    def _list_places(self, choices: tuple[str, ...]) -> tuple[str, ...]:
        parsed = [self._parse(choice) for choice in choices]
        repository = self._loader.repository
        defaults = create_defaults_list(repository, "config", parsed, prepend_hydra=False, skip_missing=False)
        return tuple(name for name in reversed(defaults.overrides.known_choices) if "@" in name)

    def sweep(self, arguments: Sequence[str], *, searches: bool) -> list[tuple[str, ...]]:
        """Return the overrides of each run of a sweep, or of one run of a search: the first of each list of values.

        Raises ``ConfigError`` for arguments that cannot be parsed.
        """
        overrides = [word for word in arguments if not word.lstrip("+~").startswith((f"{_HYDRA}.", f"{_HYDRA}/"))]
        try:
            parsed = OverridesParser.create(config_loader=self._loader).parse_overrides(overrides)
            listed = [choice for choice in parsed if not choice.is_sweep_override() or choice.is_discrete_sweep()]
            (runs,) = BasicSweeper.split_arguments(listed if searches else parsed, None)
        except HydraException as error:
            raise ConfigError(f"{' '.join(overrides)} cannot be parsed: {error}") from error
        return [tuple(run) for run in (runs[:1] if searches else runs)]

    def compose(self, overrides: Sequence[str]) -> tuple[DictConfig, Mapping[str, str]]:
        """Return the configuration, not resolved, and the option of each group; raises what Hydra raises."""
        parsed = [self._parse(override) for override in with_commit_apart(overrides)]
        self._loader.validate_sweep_overrides_legal(parsed, RunMode.RUN, from_shell=False)
        settings = [override for override in parsed if not self._is_choice(override)]
        pickled, choices = self._choose(tuple(str(choice.input_line) for choice in parsed if self._is_choice(choice)))
        config: DictConfig = loads(pickled)
        self._loader._apply_overrides_to_config(settings, config)
        return config, choices

    def compose_or_explain(self, overrides: Sequence[str]) -> tuple[DictConfig, Mapping[str, str]]:
        """Compose; raises ``ConfigError``, one sentence with the likely fix, for overrides that do not fit."""
        try:
            return self.compose(overrides)
        except (HydraException, OmegaConfBaseException, ValueError) as error:  # ValueError: Hydra's for task=null
            from ace_bench.runners.override_help import FULL_ERROR, explanation  # it composes, too

            if FULL_ERROR in os.environ:
                raise
            problem = explanation(error, self._folders, overrides, self)
            raise ConfigError(problem or f"{' '.join(overrides)} cannot be composed: {error}") from error

    def _compose_run(self, overrides: tuple[str, ...]) -> RunConfig:
        cached = self._cache / f"{digest_of([_RUN, *overrides])}.msgpack"
        if (known_config := read_composed(cached)) is not None:
            return known_config
        config, choices = self.compose_or_explain(overrides)
        composed = settle(config, choices, written=False)
        keep_composed(cached, config, composed)
        return composed

    def _is_choice(self, override: Override) -> bool:
        return self._is_group(override.key_or_group) and not isinstance(override.value(), dict)

    def _compose_choices(self, choices: tuple[str, ...]) -> tuple[bytes, Mapping[str, str]]:
        """Return the configuration of chosen options, not resolved and pickled (which copies twice as fast).

        It is cached on disk, in a folder that is named by the content of all configuration files. The cache holds
        plain values and a checksum, because others may be able to write to it.
        """
        cached = self._cache / f"{digest_of(choices)}.msgpack"
        content = read_sealed(cached)
        if content is None:
            content = msgspec.msgpack.encode(self._merge_choices(choices))
            with suppress(FileUnwritable, OSError):  # without a cache, planning only takes longer
                write_sealed(cached, content)
        plain, chosen = msgspec.msgpack.decode(content)
        config = OmegaConf.create(plain)
        OmegaConf.set_struct(config, True)
        return dumps(config), chosen

    def _merge_choices(self, choices: tuple[str, ...]) -> tuple[Any, Mapping[str, str]]:
        """Return the configuration as plain values, and the option of each group."""
        repository, parsed = self._loader.repository, [self._parse(choice) for choice in choices]
        defaults = create_defaults_list(repository, "config", parsed, prepend_hydra=False, skip_missing=False)
        config = self._loader._compose_config_from_defaults_list(defaults.defaults, repository)
        config.pop(_HYDRA, None)
        chosen = {group: option for group, option in defaults.overrides.known_choices.items() if option is not None}
        return OmegaConf.to_container(config), chosen


class _Loader(ConfigLoaderImpl):
    def __init__(self, path: ConfigSearchPathImpl) -> None:
        super().__init__(path)
        self.repository = _Parsed(path)
        self._pickled: dict[str, bytes] = {}

    def _load_single_config(self, default: ResultDefault, repo: Any) -> ConfigResult:
        """Return a copy, because merging changes the configuration that it gets."""
        name = repr(default)
        if name not in self._pickled:
            self._pickled[name] = dumps(super()._load_single_config(default, repo))
        return cast(ConfigResult, loads(self._pickled[name]))


class _Parsed(ConfigRepository):
    """Parses each file once, and leaves out its choices of Hydra's own settings."""

    def __init__(self, path: ConfigSearchPathImpl) -> None:
        super().__init__(path)
        self._load = cache(super().load_config)

    def load_config(self, config_path: str) -> ConfigResult | None:
        with reading_config(config_path):
            result = self._load(config_path)
        if result is not None and result.defaults_list is not None:
            result.defaults_list = [
                default
                for default in result.defaults_list
                if not (isinstance(default, GroupDefault) and str(default.group).lstrip("/").startswith(f"{_HYDRA}/"))
            ]
        return result
