"""A benchmark, the live environment of one of its samples, and the agent that solves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import Prompts
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Attempt, Grade, Message, Sample


class Session(Protocol):
    """One live attempt at a sample's environment."""

    @property
    def finished(self) -> bool:
        """Whether the agent has declared the task complete, so that the environment takes no more actions."""

    def step(self, action: str) -> str:
        """Run one action and return what the environment shows.

        Raises ``RolloutFault`` with owner ``model`` if the task takes no actions, or with owner ``task`` if the
        environment broke; then the rollout is attempted once more.
        """

    def grade(self, answer: str | None) -> Grade:
        """Grade the final answer; ``None`` (no answer, or a fault) counts as wrong with full weight."""


class Task(Protocol):
    """A benchmark: it owns samples, sessions and the official metric."""

    name: str
    prompt_group: str
    """Folder of shared prompts: ``prompts/<set>/<name>/`` comes first, then ``prompts/<set>/<prompt_group>/``."""
    headline: str
    """The key of ``score`` that tables show."""
    source: str
    """``real`` or ``sample`` data."""
    checksums: Mapping[str, str]
    """SHA-256 of every data file read, by file name."""
    sections: tuple[str, ...]
    """Playbook sections that suit the task (paper, appendix F)."""

    def samples(self, split: str) -> Sequence[Sample]:
        """All samples of a split in file order; an unknown split raises ``ConfigError``."""

    def open(self, sample: Sample) -> AbstractContextManager[Session]:
        """Start a session for one attempt."""

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample whose session could not be opened: wrong, with full weight."""

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the official metrics in percent over the grades of a split."""


@runtime_checkable
class Judged(Protocol):
    """A task whose grades may also use a model's verdict (LLM-as-judge; paper, section 4.1: BIRD-SQL)."""

    judge_template: str | None
    """The judge's template, "" if the task words its prompts itself; ``None`` if this run asks no judge."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the judge's template, like ``Agent.prompt_fields``."""

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Add a verdict to a session's grade; raises ``RolloutFault``, and the grade then stays as it was."""


@runtime_checkable
class JudgedAlone(Judged, Protocol):
    """A judged task without another grader: if ``judge_decides``, a grade without a verdict says nothing."""

    judge_decides: bool


@runtime_checkable
class Lifecycle(Protocol):
    """A backbone, task or agent that is started before the first call and closed after the last, such as a server."""

    def start(self, say: Callable[[str], None]) -> None:
        """Start, reporting progress in short lines; raises ``BackboneUnavailable`` or ``ConfigError``."""

    def close(self) -> None:
        """Release everything; may be called at any time and more than once."""


@runtime_checkable
class Confining(Protocol):
    """A task or agent that runs a model's code on this machine."""

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined such code so far (see ``core.confine``); ``None`` if no code was run."""


class Agent(Protocol):
    """Solves one sample under a context."""

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Attempt the sample; ``reflection`` is advice for a retry (``None`` in the first rollout of a sample).

        Raises ``RolloutFault`` when the attempt fails. It never grades.
        """

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields that the agent fills, by template; none by default.

        ``inputs`` are the fields of a sample. A prompt set that uses another field is refused before the first call.
        """
        del inputs, context_fields
        return {}


@runtime_checkable
class Conversational(Protocol):
    """An agent whose conversation can be shown to other roles."""

    def conversation(
        self, sample: Sample, context: Context, attempt: Attempt, reflection: str | None
    ) -> tuple[Message, ...]:
        """Return the messages of an attempt, made with these arguments, up to its last reply."""


@runtime_checkable
class ToolUser(Protocol):
    """An agent that acts by tools."""

    tools: ToolRules | None
    """What they do; ``None``: nothing is declared."""


@runtime_checkable
class Stepwise(Protocol):
    """An agent that may call the model several times an attempt."""

    max_steps: int
    """The most calls of an attempt."""


@runtime_checkable
class CostLimited(Protocol):
    """An agent that can stop an attempt because of its cost. The generator's backbone must then have prices."""

    max_usd: float | None
    """Dollars; ``None``: no limit."""


def headline_score(task: Task, grades: Sequence[Grade]) -> float:
    """Return the task's headline for some grades; raises ``ConfigError`` if its score does not give it."""
    scores = task.score(grades)
    if task.headline not in scores:
        raise ConfigError(
            f"the task's score gives {', '.join(scores)}, and its headline is {task.headline}: set headline to one of "
            "them and repeat the command, which makes no call again"
        )
    return scores[task.headline]
