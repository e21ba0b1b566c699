"""A backbone for rehearsals: another one replies in place of the real one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ace_bench.core.backbones import GENERATOR, Backbone, TokenCounter, answers_samples
from ace_bench.core.method import Span, exactly
from ace_bench.core.replies import is_offer
from ace_bench.core.types import Completion, Message, Record, Usage
from ace_bench.runners.limits import longest_reply

_FRAME = 5
"""The most tokens that a chat template adds to a message."""
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"(?!\s*:)')
"""A text in JSON that is no key."""
_MAX_LENGTH = re.compile(r'"maxLength":(\d+)')


class StandIn:
    """Replies in place of a real backbone, with the real one's token counts.

    ``opposite`` replies with the opposite of each verdict; ``lengthened`` replies are as long as the real one's may be.
    """

    simulated = True
    takes_tools = True  # as the stand-ins do; whether the real one does is found out at its first call

    def __init__(self, role: str, real: Backbone, substitute: Backbone, *, opposite: bool, lengthened: bool):
        self._substitute = substitute
        self._opposite = opposite
        self._lengthened = lengthened
        self._real = real
        self._role = role
        self.name = real.name
        self.identity: Record = real.identity
        self.context_length = real.context_length
        self.first: dict[str, Sequence[Message]] = {}
        self.tokens: dict[str, list[tuple[Span, Span]]] = {}
        self.asked_again: set[str] = set()
        """Roles that are asked for JSON: a reply that is none is asked for once more."""
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
        limit = longest_reply(self._real, role)
        if self._lengthened and limit is not None:
            filler = _filler(f"{session}/{completion.text}", limit - self.count(completion.text), self.count)
            completion = replace(completion, text=_lengthen(completion.text, filler, schema))
        if schema is not None and not is_offer(schema):
            self.asked_again.add(role)
        prompt, reply = sum(self.count(message.content) for message in messages), self.count(completion.text)
        framed = Span(prompt, prompt + _FRAME * len(messages))
        self.tokens.setdefault(role, []).append((framed, exactly(reply)))
        if answers_samples(role):
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


def _filler(name: str, tokens: int, count: TokenCounter) -> str:
    """Return words that no other name has, as a playbook merges bullets that are alike."""
    letters = hashlib.shake_256(name.encode()).hexdigest(max(0, tokens) * 2)
    words = " ".join(letters[start : start + 7] for start in range(0, len(letters), 7))
    return words[: len(words) * tokens // max(1, count(words))] if words else ""


def _lengthen(text: str, filler: str, schema: Record | None) -> str:
    """Return a reply whose longest text goes on with the filler, as far as its schema allows."""
    if not text.startswith("{"):
        head, end, tail = text.rpartition("</")
        return head + filler + end + tail if end else f"{text} {filler}"
    longest = max(_JSON_TEXT.finditer(text), key=lambda found: len(found.group()), default=None)
    if longest is None:
        return text
    allowed = map(int, _MAX_LENGTH.findall(msgspec.json.encode(schema).decode()))
    room = max(allowed, default=len(text) + len(filler)) - len(longest.group())
    return f"{text[: longest.end() - 1]} {filler[: max(0, room)]}{text[longest.end() - 1 :]}"
