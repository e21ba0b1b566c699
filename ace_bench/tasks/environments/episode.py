"""What an episode of an environment is, what it asks for and how it is scored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ToolTurn
from ace_bench.core.types import Fault, Message, Record


@dataclass(frozen=True, kw_only=True)
class ReplyRequest:
    """What an environment wants a model to reply to.

    ``schema`` offers tools (``backbones.offer``), and the contents of assistant and tool messages are then JSON;
    ``None`` if the conversation has nothing to do with tools.
    """

    messages: tuple[Message, ...]
    schema: Record | None = None


Ask = Callable[[ReplyRequest], Awaitable[ToolTurn]]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of an attempt: ``total`` is the mean or the sum that counts, ``parts`` are all by name."""

    total: float
    parts: Mapping[str, float] = field(default_factory=dict)
    explanation: str = ""


class Episode(Protocol):
    """One attempt at a sample in an environment; all methods run in one event loop."""

    async def play(self, ask: Ask) -> None:
        """Play until the environment ends; model calls go to ``ask``. It is cancelled where a limit is reached."""
        ...

    @property
    def final(self) -> str:
        """The answer as text, after ``play``."""
        ...

    async def score(self, ask: Ask) -> Scores:
        """Score the attempt as it stands; a scorer's own model calls go to ``ask``."""
        ...

    async def close(self) -> None:
        """Release what the environment holds."""
        ...


def fault(kind: str, message: str) -> RolloutFault:
    """Return a fault of the environment."""
    return RolloutFault(Fault(owner="task", kind=kind, message=message))


def brief(error: BaseException) -> str:
    """Return an error of another package in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
