"""A task made of an environment of ``verifiers``, by its name and arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from ace_bench.core.errors import SettingError
from ace_bench.core.resources import require
from ace_bench.core.settings import Count, Text
from ace_bench.tasks.environments.episode import Episode, brief
from ace_bench.tasks.environments.session import EnvironmentItem
from ace_bench.tasks.environments.task import CommonSettings, EnvironmentTask


class VerifiersTask(EnvironmentTask):
    """A taskset of ``verifiers``: its tasks are the questions, and its rewards grade the answers.

    ``environment`` is the name of an installed taskset package, or ``FILE.py``; ``args`` are the settings of the
    taskset. ``train_args`` are further settings with which it loads its training data; without them ``split_ratio``
    divides one set. ``answer`` names the field of a task's data that holds the reference answer, ``null`` all fields
    that are the environment's own. At most ``most`` tasks are loaded. ``judge`` lets its rewards call a model.

    Raises ``ConfigError`` at construction where the package or the environment is missing or needs what is not
    supported.
    """

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        environment: Text | None,
        args: Mapping[str, Any] | None,
        train_args: Mapping[str, Any] | None,
        answer: Text | None,
        most: Count | None,
        judge: bool,
        **common: Annotated[Any, CommonSettings],
    ):
        if environment is None:
            raise SettingError("environment is not set: name an installed taskset of verifiers, or a FILE.py")
        self._environment, self._answer, self._most, self._judge = environment, answer, most, judge
        require("task=verifiers", "verifiers")
        items = self._load(args or {})
        training = None if train_args is None else self._load({**(args or {}), **train_args})
        super().__init__(items, training, judge=judge, **common)

    def _load(self, args: Mapping[str, Any]) -> Sequence[EnvironmentItem]:
        """Return the tasks that the taskset has with these settings."""
        from verifiers.v1.utils import loaders

        plugin = _plugin(self._environment)
        try:
            taskset = loaders.load_taskset(loaders.taskset_config_type(plugin).model_validate({**args, "id": plugin}))
            tasks = list(self._tasks(taskset))
        except SettingError:
            raise
        except Exception as error:
            raise SettingError(
                f"environment={self._environment} cannot be loaded with args={dict(args)}: {brief(error)}"
            ) from error
        if loaders.environment_class(plugin).__name__ != "SingleAgentEnv":
            raise self._refusal("several agents or a user simulator")
        return [self._read_item(taskset, task) for task in tasks]

    def _tasks(self, taskset: Any) -> Iterator[Any]:
        if not taskset.bounded and self._most is None:
            raise SettingError(f"most=null, and {self._environment} has tasks without end: say how many to load")
        return islice(taskset, self._most)

    def _read_item(self, taskset: Any, task: Any) -> EnvironmentItem:
        from ace_bench.tasks.environments.verifiers_episode import VerifiersEpisode, gold_of

        self._check(task)

        async def make() -> Episode:
            return VerifiersEpisode(task, type(taskset).toolsets(taskset.config))

        if self._answer is None:
            gold = gold_of(task.data)
        elif hasattr(task.data, self._answer):
            gold = str(getattr(task.data, self._answer))
        else:
            fields = ", ".join(type(task.data).model_fields)
            raise SettingError(
                f"answer={self._answer} is not a field of the tasks of {self._environment}; there are {fields}"
            )
        return EnvironmentItem(question=task.data.prompt_text, gold=gold, make=make)

    def _check(self, task: Any) -> None:
        """Refuse what this harness does not do, before anything is spent."""
        from verifiers.v1 import Trace
        from verifiers.v1.session import hook_boundary
        from verifiers.v1.utils.decorators import discover_decorated

        stops = [hook_boundary(stop, allow_trace=True) for stop in task.hooks("stop")]
        graders = [*task.hooks("reward"), *task.hooks("metric")]
        needs = {
            "a container (Docker)": type(task).NEEDS_CONTAINER or task.data.image is not None,
            "a machine to run programs on": any(_runs_programs(grader) for grader in graders),
            "skills": bool(task.data.skills),
            "hooks on single requests": bool(discover_decorated(task, "intercept")) or {*stops} - {Trace},
            "a user who opens the conversation": task.data.prompt is None,
        }
        if any(needs.values()):
            raise self._refusal(", ".join(need for need, is_needed in needs.items() if is_needed))
        if not task.hooks("reward") and not task.config.judges:
            raise SettingError(f"environment={self._environment} has no rewards, so that answers cannot be graded")
        if task.config.judges and not self._judge:
            raise SettingError(f"judge=false, and {self._environment} is graded by a model: set task.judge=true")

    def _refusal(self, need: str) -> SettingError:
        return SettingError(f"environment={self._environment} needs {need}, which is not supported: choose another")


def _plugin(name: str) -> str:
    """Return the name by which a taskset is imported; the folder of a file is put on the path for that."""
    if not name.endswith(".py"):
        return name
    file = Path(name)
    if not file.is_file():
        raise SettingError(f"environment={name} is not a file: name a taskset's file, or an installed taskset")
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return file.stem


def _runs_programs(grader: Any) -> bool:
    parameter = inspect.signature(grader).parameters.get("runtime")
    return parameter is not None and parameter.default is inspect.Parameter.empty
