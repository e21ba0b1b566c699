"""One episode: a world of its own, code run in it, and the grade of what it is in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ace_bench.core.types import Grade
from ace_bench.tasks.appworld.catalogue import Truth
from ace_bench.tasks.appworld.client import MAX_REPLY, Client, Trouble, Unanswered
from ace_bench.tasks.appworld.outputs import SAVED, Unusable, collect
from ace_bench.tasks.appworld.pool import Pool
from ace_bench.tasks.appworld.servers import broken

T = TypeVar("T")

MAX_OUTPUT = 20_000
"""Characters of an output that an agent is shown (official agents)."""
RANDOM_SEED = 123
"""Of the world, as in the official experiments; the engine's own default is 100."""
GRACE_S = 20.0
"""Seconds beyond the engine's own time limit, which agent code can swallow, after which its process is killed."""

_SETTLE_S = 10.0
_START_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A task of the data root as a session needs it."""

    task: str
    truth: Truth

    @property
    def scenario(self) -> str:
        """The scenario that the task is a variant of."""
        return self.task.split("_")[0]

    def grade(self, *, correct: bool, observed: str, report: str, passes: int, interactions: int) -> Grade:
        """Return a grade of this task."""
        return Grade(
            score=float(correct),
            correct=correct,
            observed=observed,
            gold=self.truth.solution,
            report=report,
            group=self.scenario,
            detail={
                "difficulty": self.truth.difficulty,
                f"level{self.truth.difficulty}": 1.0,  # by which reports tell the parts of a split apart
                "tests": self.truth.tests,
                "passes": passes,
                "interactions": interactions,
            },
        )

    def forfeit(self) -> Grade:
        """Return the grade of no attempt at all."""
        return self.grade(correct=False, observed="", report="", passes=0, interactions=0)


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
        self._server = pool.server(assignment.task)
        self._client = Client(self._server.address, assignment.task, self._server.end)
        try:
            self._initialize()
        except BaseException:
            self.close()
            raise

    @property
    def finished(self) -> bool:
        """Whether the task was marked as complete, or the world is gone by the agent's own doing."""
        return self._completed or self._over

    def step(self, action: str) -> str:
        """Run code and return what it printed or why it failed, cut at 20,000 characters.

        Raises ``RolloutFault`` (owner ``task``) where the server was killed from outside. Code that breaks its own
        server ends the episode, which is then graded as it was saved last.
        """
        if self.finished:
            return "The episode is over: nothing was run."
        self._interactions += 1
        try:
            output = self._call("execute", {"code": action}, str, seconds=self._timeout + GRACE_S)
        except Unanswered as error:
            return self._without_answer(error.trouble)
        try:
            self._completed = self._call("task_completed", {}, bool, seconds=GRACE_S)
        except Unanswered as error:
            return self._without_answer(error.trouble)
        if len(output) > MAX_OUTPUT:
            return f"{output[:MAX_OUTPUT]}\n[{len(output) - MAX_OUTPUT} more characters are not shown]"
        return output

    def grade(self, answer: str | None) -> Grade:
        """End the episode and evaluate its world; what ``answer`` says does not matter, but ``None`` is a forfeit."""
        if answer is None:
            return self._assignment.forfeit()
        if self._grade is None:
            self._grade = self._evaluate()
        return self._grade

    def keep(self, target: Path) -> None:
        """End the episode and copy what the engine saved of it to ``target``; raises ``Unusable``."""
        self._server.end()
        collect(self._server.folder, self._assignment.task, target)

    def close(self) -> None:
        """Put the world away."""
        self._server.close()

    def _initialize(self) -> None:
        fields = {
            "experiment_name": str(self._server.folder / SAVED),
            "load_ground_truth": False,
            "random_seed": RANDOM_SEED,
            "timeout_seconds": self._timeout,
        }
        try:
            self._call("initialize", fields, dict, seconds=_START_S)
        except Unanswered as error:
            task = self._assignment.task
            raise broken("initialize", f"the world of {task} cannot be set up: {error.trouble}") from error

    def _call(self, method: str, fields: Mapping[str, Any], kind: type[T], *, seconds: float) -> T:
        output = self._client.call(method, fields, seconds=seconds)
        if not isinstance(output, kind):
            raise Unanswered(Trouble.GARBLED)
        return output

    def _without_answer(self, trouble: Trouble) -> str:
        """Say what became of code that has no output; raises ``RolloutFault`` where it was not the code's fault."""
        if trouble is Trouble.REFUSED:
            return "Execution failed: the code raised an exception that ends the interpreter."
        if trouble is Trouble.OVERSIZED:
            return f"Execution gave more than {MAX_REPLY >> 20} MiB of output, none of which is shown."
        if trouble is Trouble.LOST and self._server.was_killed(_SETTLE_S):
            raise broken("server", f"the environment server of {self._assignment.task} was killed")
        self._over = True
        self._server.end()
        if trouble is Trouble.OVERDUE:
            return (
                f"Execution failed. Traceback:\nExecution timed out after {self._timeout} seconds and could not be "
                "interrupted: the environment was shut down."
            )
        return "Execution failed: the code broke the environment, which was shut down."

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
            report = f"What the episode saved cannot be evaluated: {error}"
            return self._assignment.grade(
                correct=False, observed=observed, report=report, passes=0, interactions=self._interactions
            )
        return self._assignment.grade(
            correct=verdict.success,
            observed=observed,
            report=verdict.report,
            passes=verdict.passes,
            interactions=self._interactions,
        )
