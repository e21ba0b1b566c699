"""A task made of an Inspect AI task, by its name and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

from ace_bench.core.errors import SettingError
from ace_bench.core.resources import require
from ace_bench.core.settings import Text
from ace_bench.tasks.environments.episode import Episode, brief
from ace_bench.tasks.environments.session import EnvironmentItem
from ace_bench.tasks.environments.task import CommonSettings, EnvironmentTask

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample

_UNSUPPORTED = ("sandbox", "approval", "review", "sentinel", "sample_source", "model_roles", "model")
_GRADED_BY_MODEL = ("model_graded_qa", "model_graded_fact")


class InspectTask(EnvironmentTask):
    """An Inspect AI task: its solver leads the conversation, its scorers grade.

    ``name`` is ``FILE.py@task`` or ``package/task``, ``args`` are the task's arguments. ``train_args`` are further
    arguments with which it loads its training data; without them ``split_ratio`` divides one set of samples. ``judge``
    lets its scorers call a model.

    Raises ``ConfigError`` at construction where the package or the task is missing or needs what is not supported.
    """

    def __init__(
        self,
        *,
        name: Text | None,
        args: Mapping[str, Any] | None,
        train_args: Mapping[str, Any] | None,
        judge: bool,
        **common: Annotated[Any, CommonSettings],
    ):
        if name is None:
            raise SettingError("name is not set: give the task as FILE.py@task or package/task")
        items = _items(name, args or {}, judge=judge)
        training = None if train_args is None else _items(name, {**(args or {}), **train_args}, judge=judge)
        super().__init__(items, training, judge=judge, **common)


def _items(name: str, args: Mapping[str, Any], *, judge: bool) -> Sequence[EnvironmentItem]:
    task = _load(name, args)
    _check(name, task, judge=judge)
    return [_item(task, sample) for sample in task.dataset]


def _item(task: Task, sample: Sample) -> EnvironmentItem:
    from ace_bench.tasks.environments.inspect_episode import InspectEpisode

    async def make() -> Episode:
        return InspectEpisode(task, sample)

    gold = sample.target if isinstance(sample.target, str) else "\n".join(sample.target)
    return EnvironmentItem(question=_question(sample), gold=gold, make=make)


def _question(sample: Sample) -> str:
    content = sample.input
    text = (
        content
        if isinstance(content, str)
        else "\n\n".join(message.text for message in content if message.role == "user")
    )
    choices = [f"{chr(ord('A') + index)}) {choice}" for index, choice in enumerate(sample.choices or ())]
    return "\n".join([text, *choices])


def _load(name: str, args: Mapping[str, Any]) -> Task:
    require("task=inspect", "inspect_ai")
    from inspect_ai._eval.loader import load_tasks

    if name.endswith(".py"):
        raise SettingError(f"name={name} is a file: name one of its tasks as {name}@TASK")
    try:
        tasks = load_tasks([name], dict(args))
    except Exception as error:
        raise SettingError(f"name={name} cannot be loaded with args={dict(args)}: {brief(error)}") from error
    if len(tasks) != 1:
        raise SettingError(f"name={name} names {len(tasks)} tasks: name one as FILE.py@task or package/task")
    _check_arguments(name, args)
    return tasks[0]


def _check_arguments(name: str, args: Mapping[str, Any]) -> None:
    """Refuse arguments that the task does not have: Inspect AI itself only warns of them."""
    from inspect_ai._util.registry import registry_lookup

    make = registry_lookup("task", name.rpartition("@")[2])
    parameters = signature(make).parameters if callable(make) else args
    if unknown := [arg for arg in args if arg not in parameters]:
        listed = ", ".join(parameters) or "none"
        raise SettingError(f"args: the task {name} has no argument {', '.join(unknown)}; there are {listed}")


def _check(name: str, task: Task, *, judge: bool) -> None:
    """Refuse what this harness does not do, before anything is spent."""
    from inspect_ai._util.registry import registry_unqualified_name

    needs = [field for field in _UNSUPPORTED if getattr(task, field, None)]
    needs += ["sandbox of a sample"] if any(sample.sandbox or sample.files for sample in task.dataset) else []
    if needs:
        raise SettingError(f"name={name} has {', '.join(needs)}, which is not supported: choose a task without")
    if not task.scorer:
        raise SettingError(f"name={name} has no scorer, so that its answers cannot be graded: give it one")
    graders = [grader for scorer in task.scorer if (grader := registry_unqualified_name(scorer)) in _GRADED_BY_MODEL]
    if graders and not judge:
        raise SettingError(f"judge=false, and {name} is graded by a model ({', '.join(graders)}): set task.judge=true")
