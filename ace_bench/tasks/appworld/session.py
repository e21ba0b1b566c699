"""One episode: run code in a fresh world and grade the world's final state.

The server of a world may be under the control of agent code, so the time and size of a reply are limited and its form
is checked.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ace_bench.core.encoding import decoder_of
from ace_bench.core.types import Grade
from ace_bench.tasks.appworld.data import Truth
from ace_bench.tasks.appworld.engine_side.processes import MAX_OUTPUT, receive, send
from ace_bench.tasks.appworld.pool import Pool, Unusable, Verdict, collect
from ace_bench.tasks.appworld.servers import task_fault

_MAX_REPLY = 1 << 20
"""Longest reply that is read, in bytes: an output with every character escaped is shorter."""


class Reply(msgspec.Struct, frozen=True):
    """``output`` of a piece of code, without the ``left_out`` characters after it, and whether the task is complete."""

    output: Annotated[str, Meta(max_length=MAX_OUTPUT)]
    left_out: Annotated[int, Meta(ge=0, lt=1 << 40)]
    completed: bool


def run_code(server: socket.socket, code: str, *, seconds: float) -> Reply:
    """Have a server run a piece of code.

    Raises ``TimeoutError`` without a whole reply in time, another ``OSError`` where the connection breaks, and
    ``ValueError`` for a reply that is too long or does not have the right form.
    """
    deadline = time.monotonic() + seconds

    def read(count: int) -> bytes:
        server.settimeout(max(deadline - time.monotonic(), 1e-3))
        return server.recv(count)

    server.settimeout(seconds)
    send(server, code.encode(errors="replace"))
    try:
        reply: Reply = decoder_of(Reply).decode(receive(read, _MAX_REPLY))
    except RecursionError as error:
        raise ValueError("the reply is nested too deeply") from error
    return reply


GRACE_S = 20.0
"""Seconds after the engine's own time limit at which the server is killed: agent code can catch the engine's error."""

_SETTLE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A task of the data root as a session needs it."""

    task: str
    truth: Truth

    def grade(self, verdict: Verdict, *, observed: str = "", interactions: int = 0) -> Grade:
        """Return a grade of this task; its group is the scenario."""
        return Grade(
            score=float(verdict.success),
            correct=verdict.success,
            observed=observed,
            gold=self.truth.solution,
            report=verdict.report,
            group=self.task.split("_")[0],
            detail={
                "difficulty": self.truth.difficulty,
                f"level{self.truth.difficulty}": 1.0,  # reports group a split by it
                "tests": self.truth.tests,
                "passes": verdict.passes,
                "interactions": interactions,
            },
        )

    def failing_grade(self) -> Grade:
        """Return the grade of a sample without an attempt."""
        return self.grade(Verdict())


class WorldSession:
    """Runs code in a fresh world; ``timeout`` is the engine's limit for a piece of code, in seconds.

    Construction raises ``RolloutFault`` (owner ``task``) where the world cannot be set up.
    """

    def __init__(self, pool: Pool, assignment: Assignment, *, timeout: int):
        self._pool = pool
        self._assignment = assignment
        self._timeout = timeout
        self._interactions = 0
        self._completed = False
        self._over = False
        self._grade: Grade | None = None
        self._server = pool.server(assignment.task, timeout=timeout)

    @property
    def finished(self) -> bool:
        """Whether the agent marked the task as complete, or broke its world."""
        return self._completed or self._over

    def step(self, action: str) -> str:
        """Run code and return its output or error, cut at 20,000 characters.

        Code that breaks its own server ends the episode, which is graded by its last saved state. Raises
        ``RolloutFault`` (owner ``task``) where the server was killed from outside.
        """
        if self.finished:
            return "The episode is over: nothing was run."
        self._interactions += 1
        try:
            reply = run_code(self._server.connection, action, seconds=self._timeout + GRACE_S)
        except TimeoutError:
            return self._end(
                f"Execution failed. Traceback:\nExecution timed out after {self._timeout} seconds and could not be "
                "interrupted: the environment was shut down."
            )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and self._server.was_killed(_SETTLE_S):
                raise task_fault("server", f"the environment server of {self._assignment.task} was killed") from error
            return self._end("Execution failed: the code broke the environment, which was shut down.")
        self._completed = reply.completed
        if reply.left_out:
            return f"{reply.output}\n[{reply.left_out} more characters are not shown]"
        return reply.output

    def grade(self, answer: str | None) -> Grade:
        """End the episode and evaluate its world; the text of ``answer`` is not used, ``None`` grades as wrong."""
        if answer is None:
            return self._assignment.failing_grade()
        if self._grade is None:
            self._grade = self._evaluate()
        return self._grade

    def keep(self, target: Path) -> None:
        """End the episode and copy what the engine saved of it to ``target``; raises ``Unusable``."""
        self._server.end()
        collect(self._server.folder, self._assignment.task, target)

    def close(self) -> None:
        """End the server and remove its files."""
        self._server.close()

    def _end(self, output: str) -> str:
        self._over = True
        self._server.end()
        return output

    def _evaluate(self) -> Grade:
        self._server.end()
        observed = (
            f"The task was marked as complete after {self._interactions} pieces of code."
            if self._completed
            else f"The attempt ended after {self._interactions} pieces of code without marking the task as complete."
        )
        try:
            verdict = self._pool.score(self._server, self._assignment.task)
        except Unusable as error:
            verdict = Verdict(report=f"What the episode saved cannot be evaluated: {error}")
        return self._assignment.grade(verdict, observed=observed, interactions=self._interactions)
