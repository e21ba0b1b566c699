"""Sessions whose environment leads the conversation: it asks for replies, and an agent passes its requests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ace_bench.core.tools import ToolTurn
from ace_bench.core.types import Message, Record


@dataclass(frozen=True, kw_only=True)
class ReplyRequest:
    """What an environment wants a model to reply to.

    ``schema`` offers tools (``core.tools``), and the contents of assistant and tool messages are then JSON; ``None``
    where the conversation has nothing to do with tools.
    """

    messages: tuple[Message, ...]
    schema: Record | None = None


@runtime_checkable
class HostedSession(Protocol):
    """A session of such an environment: ``next_request`` and ``reply`` take turns until there is no request left."""

    def next_request(self) -> ReplyRequest | None:
        """Wait for the environment; ``None`` once it wants no more replies.

        Raises ``RolloutFault`` (owner ``task``) where the environment raises or does not answer in time.
        """
        ...

    def reply(self, turn: ToolTurn) -> None:
        """Give the environment what the model said."""
        ...

    @property
    def final(self) -> str:
        """What the environment takes as the answer; "" where it has none."""
        ...
