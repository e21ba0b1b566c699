"""A task made of a folder of Harbor tasks, the format of Terminal-Bench 2: an instruction, a machine, tests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import SettingError
from ace_bench.core.resources import require
from ace_bench.core.settings import Count, Text
from ace_environments.commands import as_command, first_request
from ace_environments.episode import Episode, brief
from ace_environments.session import EnvironmentItem
from ace_environments.task import CommonSettings, EnvironmentTask, background_of

if TYPE_CHECKING:
    from harbor.models.task.task import Task

    from ace_environments.harbor_episode import Rules

BUBBLEWRAP = "bubblewrap"
_BUBBLEWRAP_CLASS = "ace_environments.harbor_bubblewrap:BubblewrapEnvironment"


class HarborTask(EnvironmentTask):
    """Harbor tasks: the model gives commands to a machine, the task's tests write its reward.

    ``folder`` is one task or holds many; ``train_folder`` holds tasks to learn from, without it ``split_ratio`` divides
    the one set. ``machine`` is a type of Harbor's environments, ``MODULE:CLASS`` of another, or ``bubblewrap``, which
    needs no containers. ``commands`` says how the model gives them: by a ``tool``, or in a ``block`` of its reply.
    ``command_timeout`` is the most seconds of a command.

    Raises ``ConfigError`` at construction where Harbor or the machine is missing, or where a task needs what is not
    supported.
    """

    def __init__(
        self,
        *,
        folder: Text | None,
        train_folder: Text | None,
        machine: Text,
        commands: Literal["tool", "block"],
        command_timeout: Count,
        **common: Annotated[Any, CommonSettings],
    ):
        if folder is None:
            raise SettingError("folder is not set: name a folder of Harbor tasks")
        _check_machine(machine)
        from ace_environments.harbor_episode import Rules

        rules = Rules(machine=_import_path(machine), commands=commands, command_timeout=command_timeout)
        items = [_item(task, rules) for task in _tasks("folder", folder, rules)]
        training = None
        if train_folder is not None:
            training = [_item(task, rules) for task in _tasks("train_folder", train_folder, rules)]
        self._told = background_of(first_request("", commands))
        super().__init__(items, training, **common)

    def _shared_text(self) -> str:
        """Return the system text and the tool, which need no machine."""
        return self._told


def _import_path(machine: str) -> str:
    return _BUBBLEWRAP_CLASS if machine == BUBBLEWRAP else machine


def _check_machine(machine: str) -> None:
    """Refuse a machine that cannot be had, before anything is spent."""
    require("task=harbor, with Python 3.12 or newer,", "harbor")
    from harbor.environments.factory import EnvironmentFactory
    from harbor.models.environment_type import EnvironmentType

    path = _import_path(machine)
    known = [*(str(one.value) for one in EnvironmentType), BUBBLEWRAP]
    if ":" not in path and path not in known:
        raise SettingError(f"machine={machine} is unknown: give MODULE:CLASS or one of {', '.join(known)}")
    try:
        kind = None if ":" in path else EnvironmentType(path)
        EnvironmentFactory.run_preflight(kind, path if kind is None else None)
    except (SystemExit, Exception) as error:  # Harbor ends the process where a machine is missing
        raise SettingError(f"machine={machine} cannot be used: {' '.join(str(error).split())}") from error


def _tasks(setting: str, folder: str, rules: Rules) -> Sequence[Task]:
    from harbor.models.task.task import Task

    root = Path(folder)
    places = [root] if (root / "task.toml").is_file() else sorted(one.parent for one in root.glob("*/task.toml"))
    if not places:
        raise SettingError(
            f"{setting}={folder} holds no Harbor task: name a folder with task.toml, or one of such folders"
        )
    tasks = []
    for place in places:
        try:
            tasks.append(Task(place))
            rules.check(tasks[-1])
        except Exception as error:
            raise SettingError(f"{setting}={folder}: {place.name} cannot be used: {brief(error)}") from error
        _check(f"{setting}={folder}: {place.name}", tasks[-1])
    return tasks


def _check(where: str, task: Task) -> None:
    needs = {
        "several steps": task.has_steps,
        "MCP servers": bool(task.config.environment.mcp_servers),
        "skills": bool(task.config.environment.skills_dir),
        "Windows": task.config.environment.os.value != "linux",
    }
    if any(needs.values()):
        need = ", ".join(need for need, there in needs.items() if there)
        raise SettingError(f"{where} needs {need}, which is not supported: take it out of the folder")


def _item(task: Task, rules: Rules) -> EnvironmentItem:
    from ace_environments.harbor_episode import HarborEpisode

    async def make() -> Episode:
        return HarborEpisode(task, rules)

    solution = task.paths.solution_dir / "solve.sh"
    script = solution.read_text(encoding="utf-8", errors="replace") if solution.is_file() else ""
    gold = as_command(script, rules.commands) if script else ""
    files = sorted(path for path in task.task_dir.rglob("*") if path.is_file())
    digest = digest_of({str(path.relative_to(task.task_dir)): sha256(path.read_bytes()).hexdigest() for path in files})
    return EnvironmentItem(question=task.instruction.strip(), gold=gold, make=make, digest=digest)
