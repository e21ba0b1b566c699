"""Tasks by name, as ``configs/task`` lists them, for scripts that need no whole experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders, options, reading_config
from ace_bench.core.settings import build
from ace_bench.core.task import Task


def task_names() -> list[str]:
    """Names of all tasks that have a configuration file."""
    return list(options("task", config_folders()))


def task_class(name: str) -> type[Any]:
    """Return a task's class; raises ``ConfigError`` for an unknown task."""
    from hydra.utils import get_class

    return get_class(settings_from_file(name)["_target_"])


def make_task(name: str, *, sample_allowed: bool, **overrides: Any) -> Task:
    """Make a task from its configuration file; overrides that are ``None`` leave the file's value.

    Of a group of settings only those change that an override names.
    """
    from omegaconf import OmegaConf

    # The defaults choose what belongs to a run beside the task, such as its agent.
    settings = {key: value for key, value in settings_from_file(name).items() if key != "defaults"}
    changes = {key: value for key, value in overrides.items() if value is not None}
    node = OmegaConf.to_container(OmegaConf.merge(settings, changes))
    task: Task = build(node, "task", sample_allowed=sample_allowed)
    return task


def settings_from_file(name: str) -> Mapping[str, Any]:
    """Return the settings of a task's configuration file and of those that it builds on; raises ``ConfigError``."""
    from omegaconf import OmegaConf

    files = options("task", config_folders())
    if name not in files:
        raise ConfigError(f"there is no task {name}; choose one of {', '.join(files)}")
    with reading_config(files[name]):
        settings: Any = OmegaConf.load(files[name])
    parents = [entry for entry in settings.get("defaults", ()) if isinstance(entry, str) and entry != "_self_"]
    merged = OmegaConf.to_container(OmegaConf.merge(*map(settings_from_file, parents), settings))
    if not isinstance(merged, dict) or "_target_" not in merged:
        raise ConfigError(f"{files[name]} names no _target_ class")
    return {str(key): value for key, value in merged.items()}
