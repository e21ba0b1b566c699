"""Tasks by name, as ``configs/task`` lists them, for scripts that need no whole experiment."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.settings import make_part
from ace_bench.core.task import Task

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "task"


def task_names() -> list[str]:
    """Names of all tasks that have a configuration file."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def task_class(name: str) -> type[Any]:
    """Return a task's class; raises ``ConfigError`` for an unknown task."""
    from hydra.utils import get_class

    return get_class(_settings(name)["_target_"])


def make_task(name: str, *, sample_allowed: bool, **overrides: Any) -> Task:
    """Make a task from its configuration file; overrides that are ``None`` leave the file's value."""
    kind = task_class(name)
    wanted = inspect.signature(kind).parameters
    # The group file may also hold choices that are not the task's own, such as its agent.
    settings = {key: value for key, value in _settings(name).items() if key in wanted}
    settings |= {key: value for key, value in overrides.items() if value is not None}
    task: Task = make_part(kind, settings, "task", sample_allowed=sample_allowed)
    return task


def _settings(name: str) -> Mapping[str, Any]:
    from omegaconf import OmegaConf

    if name not in task_names():
        raise ConfigError(f"there is no task {name}; choose one of {', '.join(task_names())}")
    settings = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{name}.yaml"))
    if not isinstance(settings, dict) or "_target_" not in settings:
        raise ConfigError(f"configs/task/{name}.yaml names no _target_ class")
    return {str(key): value for key, value in settings.items()}
