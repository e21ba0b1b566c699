"""A backbone for rehearsals: another one replies in place of the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ace_bench.core.backbones import GENERATOR, Backbone
from ace_bench.core.method import Span, exactly
from ace_bench.core.types import Completion, Message, Record, Usage

_FRAME = 5
"""The most tokens that a chat template adds to a message."""


class StandIn:
    """Replies in place of a real backbone, with the real one's token counts."""

    simulated = True
    takes_tools = True  # as the stand-ins do; whether the real one does is found out at its first call

    def __init__(self, role: str, real: Backbone, substitute: Backbone, *, opposite: bool):
        self._substitute = substitute
        self._opposite = opposite
        self._real = real
        self._role = role
        self.name = real.name
        self.identity: Record = real.identity
        self.context_length = real.context_length
        self.first: dict[str, Sequence[Message]] = {}
        self.tokens: dict[str, list[tuple[Span, Span]]] = {}
        self.exchange = 0.0
        """Tokens of a reply and what follows it, on average over the longest of the generator's conversations."""

    def count(self, text: str) -> int:
        """Count as the real one does."""
        return self._real.count(text)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return the other's reply."""
        if self._role in (role, GENERATOR):
            self.first.setdefault(role, messages)
        completion = self._substitute.complete(messages, role=role, session=session, schema=schema)
        if self._opposite:
            completion = replace(completion, text=_opposite_verdict(completion.text))
        prompt, reply = sum(self.count(message.content) for message in messages), self.count(completion.text)
        framed = Span(prompt, prompt + _FRAME * len(messages))
        self.tokens.setdefault(role, []).append((framed, exactly(reply)))
        if role == GENERATOR:
            self.exchange = max(self.exchange, self._exchange(messages))
        return replace(completion, usage=Usage(prompt=prompt, completion=reply, cached=0))

    def _exchange(self, messages: Sequence[Message]) -> float:
        replies = [place for place, message in enumerate(messages) if message.role == "assistant"]
        return sum(self.count(message.content) for message in messages[replies[0] :]) / len(replies) if replies else 0.0


def _opposite_verdict(text: str) -> str:
    """Return a reply with the opposite of each truth value in it; a reply that is no JSON object has none."""
    try:
        reply = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(reply, dict) or not any(isinstance(value, bool) for value in reply.values()):
        return text
    return msgspec.json.encode({k: not v if isinstance(v, bool) else v for k, v in reply.items()}).decode()
