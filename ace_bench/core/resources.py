"""Finds the configuration tree and the prompt sets, and says which extra a missing package needs.

The project's own are package data: in a checkout ``ace_bench/configs`` and ``ace_bench/prompts`` are links to the
folders at its top, in a wheel they are folders. Another package adds its folders ``configs`` and ``prompts`` by an
entry point of the group ``ace_bench.plugins``. ``--config-dir`` adds a folder of configs, and the folder ``prompts``
beside it, without a package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ace_bench.core.errors import ConfigError, DataError

PLUGINS = "ace_bench.plugins"
"""The group of entry points. Names are free; values are packages."""
CONTEXTS = "ace_bench.contexts"
"""The group of entry points by which packages register their kinds of context: kind = class."""
CONFIG_DIRS = "ACE_BENCH_CONFIG_DIRS"
"""The environment variable that passes the folders of ``--config-dir`` to this process and its children."""

_METHODS_CONTEXTS = {
    "memory": "ace_bench.methods.field.stream_memory:Memory",
    "playbook_text": "ace_bench.methods.official.playbook:TextPlaybook",
    "reasoning_items": "ace_bench.methods.field.reasoning_bank:ReasoningItems",
    "workflows": "ace_bench.methods.field.workflows:Workflows",
}
"""The contexts of our methods: a module is imported only when a saved context is of its kind."""
_PACKAGE = re.compile(r"^# @package (\w+)$", re.MULTILINE)


def configs_folder() -> Path:
    """Return the folder of ``config.yaml`` and the config groups."""
    return (import_folder() / "ace_bench" / "configs").resolve()


@contextmanager
def reading_config(path: object) -> Iterator[None]:
    """Turn the errors of a configuration file that is not YAML into ``DataError``."""
    try:
        yield
    except Exception as error:
        from msgspec import DecodeError
        from yaml import YAMLError  # type: ignore[import-untyped]

        if not isinstance(error, (DecodeError, UnicodeDecodeError, YAMLError)):
            raise
        problem = " ".join(str(error).split())
        raise DataError(f"the configuration {path} is not YAML in UTF-8: {problem}; correct it") from error


def prompts_folder() -> Path:
    """Return the folder whose subfolders are the prompt sets."""
    return (import_folder() / "ace_bench" / "prompts").resolve()


def config_folders() -> tuple[Path, ...]:
    """Return all folders that hold config groups, in the order in which they are searched."""
    return (configs_folder(), *(folder / "configs" for folder in _plugins()), *_config_dirs())


def prompt_folders() -> tuple[Path, ...]:
    """Return all folders that hold prompt sets, in the order in which they are searched."""
    roots = (*_plugins(), *(folder.parent for folder in _config_dirs()))
    return (prompts_folder(), *(folder / "prompts" for folder in roots if (folder / "prompts").is_dir()))


def options(group: str, folders: Sequence[Path]) -> dict[str, Path]:
    """Return the options of a config group with their files, sorted by name; of equal names the first counts."""
    paths: dict[str, Path] = {}
    for folder in folders:
        for path in (folder / group).glob("*.yaml"):
            paths.setdefault(path.stem, path)
    return dict(sorted(paths.items()))


def option_place(text: str, group: str) -> str:
    """Return where the settings of an option's file go: to its group or its package, "" for the top."""
    package = _PACKAGE.search(text)
    return group if package is None else package[1].removeprefix("_global_")


def add_config_dir(folder: str) -> None:
    """Add a folder of configs for the rest of this process; raises ``ConfigError`` if it does not exist."""
    if not folder or not Path(folder).is_dir():
        problem = f"--config-dir {folder} is not a folder" if folder else "--config-dir has no value"
        raise ConfigError(f"{problem}; name a folder that holds config groups such as task/")
    earlier = os.environ.get(CONFIG_DIRS)
    os.environ[CONFIG_DIRS] = os.pathsep.join([*([earlier] if earlier else []), str(Path(folder).resolve())])


def _config_dirs() -> tuple[Path, ...]:
    return tuple(Path(folder) for folder in os.environ.get(CONFIG_DIRS, "").split(os.pathsep) if folder)


@cache  # looking through all installed packages takes 7 ms of CPU
def _plugins() -> tuple[Path, ...]:
    """Return the folders of installed packages that extend this one."""
    folders = []
    for point in sorted(entry_points(group=PLUGINS)):
        spec = find_spec(point.value)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigError(
                f"the package {point.value} is not there, which joins by the entry point {point.name} of {PLUGINS}: "
                "install again the package that has this entry point"
            )
        folders.append(Path(next(iter(spec.submodule_search_locations))))
    return tuple(folders)


def context_kinds() -> Mapping[str, EntryPoint]:
    """Return the entry points of the methods' contexts, ours and other packages'."""
    own_kinds = {kind: EntryPoint(kind, target, CONTEXTS) for kind, target in _METHODS_CONTEXTS.items()}
    return {**own_kinds, **{point.name: point for point in sorted(entry_points(group=CONTEXTS))}}


def import_folder() -> Path:
    """Return the folder from which ``ace_bench`` is imported; child processes put it on their path."""
    return Path(str(files("ace_bench"))).parent


EXTRAS: Mapping[str, str] = {
    "datasets": "data",
    "dspy": "optimisers",
    "inspect_ai": "inspect",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "langgraph": "langchain",
    "matplotlib": "analysis",
    "model2vec": "static",
    "optuna": "sweeps",
    "pandas": "analysis",
    "ray": "sweeps",
    "sentence_transformers": "embeddings",
    "submitit": "sweeps",
    "tensorboardX": "tracking",
    "verifiers": "verifiers",
    "wandb": "tracking",
}
"""The extra that installs each optional package that this project imports."""


def missing_package(feature: str, package: str, otherwise: str = "") -> ConfigError:
    """Return the error for a feature whose package is missing. ``otherwise`` names another way."""
    hint = f", or {otherwise}" if otherwise else ""
    return ConfigError(f"{feature} needs {package}: pip install 'ace-bench[{EXTRAS[package]}]'{hint}")


def require(feature: str, *packages: str, otherwise: str = "") -> None:
    """Raise ``ConfigError`` for the first of ``packages`` that is not installed; imports nothing."""
    for package in packages:
        if find_spec(package) is None:
            raise missing_package(feature, package, otherwise)


def missing_extra(error: BaseException | None, feature: str = "this command") -> ConfigError | None:
    """Return the error for a missing package that an exception or its cause names.

    ``None`` means that no package of ours is missing.
    """
    while error is not None:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in EXTRAS:
            return missing_package(feature, package)
        error = error.__cause__ or error.__context__
    return None
