"""What solves a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.task import Session
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Attempt, Message, Sample


class Agent(Protocol):
    """Solves one sample under a context."""

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Attempt the sample; ``reflection`` is advice for a retry (``None`` in the first rollout of a sample).

        Raises ``RolloutFault`` when the attempt fails. It never grades.
        """
        ...

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields that the agent fills, by template; none by default.

        ``inputs`` are the fields of a sample, ``shown`` those of the context. A prompt set that uses another field is
        refused before the first call.
        """
        del inputs, shown
        return {}


@runtime_checkable
class Conversational(Protocol):
    """An agent whose conversation can be shown to other roles."""

    def conversation(
        self, sample: Sample, context: Context, attempt: Attempt, reflection: str | None
    ) -> tuple[Message, ...]:
        """Return the messages of an attempt, made with these arguments, up to its last reply."""
        ...


@runtime_checkable
class ToolUser(Protocol):
    """An agent that acts by tools."""

    tools: ToolRules | None
    """What they do; ``None``: nothing is declared."""


@runtime_checkable
class CostLimited(Protocol):
    """An agent that can end an attempt by its cost, for which the generator's backbone must have prices."""

    max_usd: float | None
    """Dollars; ``None``: no limit."""
