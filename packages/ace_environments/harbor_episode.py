"""One attempt at a Harbor task, as a trial of Harbor's own: it makes the machine, runs the agent and then the tests.

The agent of the trial asks this harness for replies. The trial goes on to its tests when the attempt is to be scored,
so that neither tests nor solution are on the machine before.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from harbor.agents.base import BaseAgent
from harbor.environments.factory import EnvironmentFactory
from harbor.models.task.task import Task
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.models.trial.paths import EnvironmentPaths, TrialPaths
from harbor.trial.hooks import TrialEvent
from harbor.trial.trial import Trial
from harbor.utils.logger import logger as harbor_logger

from ace_bench.core.types import Message
from ace_environments.commands import (
    BLOCK,
    NO_COMMAND,
    Commands,
    first_request,
    read_command,
    refuse_command,
    show_output,
)
from ace_environments.episode import Ask, ReplyRequest, Scores, fault
from ace_environments.messages import assistant_message, tool_message

harbor_logger.setLevel(logging.WARNING)  # else it says on the console what each trial does
_MOST_TEST_OUTPUT = 2000


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How attempts are made; ``machine`` is a type of Harbor's environments or ``MODULE:CLASS``."""

    machine: str
    commands: Commands
    command_timeout: int

    @property
    def environment(self) -> EnvironmentConfig:
        """The machine, as Harbor's configuration names it."""
        return EnvironmentConfig(**{"import_path" if ":" in self.machine else "type": self.machine})

    def check(self, task: Task) -> None:
        """Raise what the machine says of a task that it cannot run; it is not started."""
        EnvironmentFactory.create_environment_from_config(
            self.environment,
            environment_dir=task.paths.environment_dir,
            environment_name=task.short_name,
            session_id="check",
            trial_paths=TrialPaths(trial_dir=task.task_dir),
            task_env_config=task.config.environment,
        )


class HarborEpisode:
    """Plays and scores one task."""

    def __init__(self, task: Task, rules: Rules):
        self._task = task
        self._rules = rules
        self._folder = tempfile.TemporaryDirectory(prefix="ace-harbor-", ignore_cleanup_errors=True)
        self._attempted = asyncio.Event()
        self._scored = asyncio.Event()
        self._agent: HostedAgent | None = None
        self._trial: Trial | None = None
        self._running: asyncio.Task[Any] | None = None

    @property
    def final(self) -> str:
        """The last reply."""
        return "" if self._agent is None else self._agent.final

    async def play(self, ask: Ask) -> None:
        """Start the trial and wait until its agent has ended."""
        config = TrialConfig(
            task=TaskConfig(path=self._task.task_dir),
            trials_dir=Path(self._folder.name),
            trial_name=f"{self._task.short_name[:32]}__{uuid4().hex[:8]}",  # names its container, too
            agent=AgentConfig(import_path=f"{HostedAgent.__module__}:{HostedAgent.__name__}"),
            environment=self._rules.environment,
        )
        self._trial = await Trial.create(config)
        assert isinstance(self._trial.agent, HostedAgent)
        self._agent = self._trial.agent
        self._agent.host(ask, self._rules)
        self._trial.add_hook(TrialEvent.AGENT_END, self._wait_to_be_scored)
        self._running = asyncio.ensure_future(self._trial.run())
        ended = asyncio.ensure_future(self._attempted.wait())
        try:
            await asyncio.wait([self._running, ended], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the harness's limit of turns: the attempt is scored as it stands
            self._agent.stop()
            raise
        finally:
            ended.cancel()
        if not self._attempted.is_set():
            raise fault("environment", _failure(await self._running))

    async def _wait_to_be_scored(self, event: object) -> None:
        self._attempted.set()
        await self._scored.wait()
        assert self._trial is not None
        # What commands left there would count as a reward.
        await self._trial.agent_environment.empty_dirs([EnvironmentPaths.verifier_dir], chmod=True)

    async def score(self, ask: Ask) -> Scores:
        """Let the trial run the task's tests; the total is the reward ``reward``, or the mean of what they wrote."""
        assert self._running is not None
        assert self._trial is not None
        self._scored.set()
        result = await self._running
        assert self._agent is not None
        if self._agent.error is not None:
            raise fault("environment", f"{type(self._agent.error).__name__}: {self._agent.error}")
        rewards = result.verifier_result.rewards if result.verifier_result is not None else None
        if not rewards:
            raise fault("scorer", _failure(result))
        parts = {name: float(value) for name, value in rewards.items()}
        said = self._trial.paths.test_stdout_path
        printed = said.read_text(encoding="utf-8", errors="replace")[-_MOST_TEST_OUTPUT:] if said.is_file() else ""
        total = parts["reward"] if "reward" in parts else sum(parts.values()) / len(parts)
        return Scores(total=total, parts=parts, explanation=printed.strip())

    async def close(self) -> None:
        """End the trial, which removes its machine."""
        if self._running is not None and not self._running.done():
            self._scored.set()
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        self._folder.cleanup()


class HostedAgent(BaseAgent):  # type: ignore[misc]
    """The agent of a trial: it asks this harness for replies and runs their commands on the machine."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.final = ""
        self.error: Exception | None = None
        self._playing: asyncio.Future[None] | None = None
        self._stopped = False

    @staticmethod
    def name() -> str:
        """The name in Harbor's records."""
        return "ace-bench"

    def version(self) -> str | None:
        """No version of its own."""
        return None

    def host(self, ask: Ask, rules: Rules) -> None:
        """Set whom to ask."""
        self._ask, self._rules = ask, rules

    def stop(self) -> None:
        """End the attempt where it stands."""
        self._stopped = True
        if self._playing is not None:
            self._playing.cancel()

    async def setup(self, environment: Any) -> None:
        """Nothing to set up."""

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Play until the model gives no command, is stopped, or the task's limit of time ends it."""
        self._playing = asyncio.ensure_future(self._play(instruction, environment))
        try:
            await self._playing
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        except Exception as error:  # raised here, it would end the trial without a word of what failed
            self.error = error

    async def _play(self, instruction: str, machine: Any) -> None:
        request = first_request(instruction, self._rules.commands)
        tools, messages = request.schema is not None, list(request.messages)
        while True:
            turn = await self._ask(ReplyRequest(messages=tuple(messages), schema=request.schema))
            self.final = turn.content
            messages.append(assistant_message(turn, tools=tools))
            messages += [
                tool_message(one.id, await self._execute(machine, read_command(one))) for one in turn.tool_calls
            ]
            block = None if tools else BLOCK.search(turn.content)
            if block is not None:
                messages.append(Message(role="user", content=await self._execute(machine, block[1])))
            elif not turn.tool_calls:
                return

    async def _execute(self, machine: Any, command: str | None) -> str:
        """Run a command of the model's and return what it is told."""
        limit = self._rules.command_timeout
        if command is None:
            return NO_COMMAND
        if (refusal := refuse_command(command)) is not None:
            return refusal
        try:
            result = await machine.exec(command, timeout_sec=limit)
        except (RuntimeError, TimeoutError) as error:
            if isinstance(error, TimeoutError) or "timed out" in str(error):
                return f"Error: the command did not end within {limit} s"
            raise
        return show_output(result.stdout, result.stderr, result.return_code)


def _failure(result: Any) -> str:
    failure = result.exception_info
    if failure is None:
        return "the trial gave no reward"
    said = " ".join(failure.exception_message.split())  # a command comes first, its last words say what failed
    return f"{failure.exception_type}: {said if len(said) < 600 else f'{said[:200]} [...] {said[-400:]}'}"
