"""Ends the calls of a run: by its hard budget, or by a request to stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any

from ace_bench.core.backbones import Backbone, Limited, Priced
from ace_bench.core.errors import Stopped
from ace_bench.core.settings import Count, Positive
from ace_bench.core.types import Usage
from ace_bench.store.call_log import Account, Cost
from ace_bench.store.requests import PreparedRequest

_LIMITS = ("calls", "tokens", "usd")
_FRAME_BYTES = 256
"""What a server's chat template may add to a prompt, in bytes."""
_MARGIN = 1.25
"""How many times the tokens per byte of a prompt may exceed those of any earlier prompt of its role."""
UNKNOWN_REPLY = 4096
"""The assumed tokens of a reply without a known limit, in estimates and before the first reply of its role."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of a whole run, earlier processes included; ``None`` means no limit.

    ``calls`` counts answered calls and the useless replies before an answer. ``tokens`` limits prompt and completion
    tokens together. ``seconds`` limits the wall time of adaptation and evaluation. With ``shared`` all runs in
    ``<results>/<name>`` have the limits together, except ``seconds``.
    """

    calls: Count | None = None
    tokens: Count | None = None
    usd: Positive | None = None
    seconds: Positive | None = None
    shared: bool = False

    @property
    def needs_bounds(self) -> bool:
        """Whether a limit depends on the size of calls."""
        return self.tokens is not None or self.usd is not None

    @property
    def limits_calls(self) -> bool:
        """Whether there is a limit besides that on time."""
        return any(self._calls_limits())

    @property
    def has_limits(self) -> bool:
        """Whether anything is limited."""
        return self.seconds is not None or self.limits_calls

    def divide(self, spent: Cost, shares: int) -> Budget:
        """Divide what remains of the limits into equal shares. Nothing remains of a limit whose cost is unknown."""
        parts: dict[str, Any] = {}
        for name, limit in self._calls_limits():
            used = getattr(spent, name)
            remaining = 0 if used is None else max(0, limit - used)
            parts[name] = remaining / shares if name == "usd" else remaining // shares
        return replace(self, **parts)

    def raised_by(self, spent: Cost) -> Budget:
        """Return the same limits for calls after those that cost ``spent``."""
        return replace(self, **{name: limit + (getattr(spent, name) or 0) for name, limit in self._calls_limits()})

    def describe(self) -> str:
        """Return the limits of calls in words."""
        return ", ".join(f"{limit:,.12g} {name}" for name, limit in self._calls_limits())

    def _calls_limits(self) -> Iterator[tuple[str, Any]]:
        yield from ((name, limit) for name in _LIMITS if (limit := getattr(self, name)) is not None)

    def too_small_for(self, needed: Account) -> str | None:
        """Return the limit that a run with this cost would exceed, ``None`` if there is none. Unknown costs fit."""
        for name in _LIMITS:
            limit, cost = getattr(self, name), getattr(Cost.from_account(needed), name)
            if limit is not None and cost is not None and cost > limit:
                return f"budget.{name}={limit:g}"
        return None

    def refusal(self, spent: Cost, requested: Cost) -> str | None:
        """Return why a call that may cost ``requested`` does not fit beside ``spent``, ``None`` if it does."""
        for name in _LIMITS:
            limit, used, cost = (getattr(part, name) for part in (self, spent, requested))
            if limit is None:
                continue
            if used is None:
                return f"budget.{name} is set but the backbone does not report {name}; drop it or use budget.calls"
            if used + cost <= limit:
                continue
            if used >= limit or name == "calls":
                return f"budget.{name}={limit:g} is used up"
            remaining, needed = (f"{amount:.2g}" if name == "usd" else f"{amount:,}" for amount in (limit - used, cost))
            return f"budget.{name}={limit:g} has {remaining} left, and the next call may take {needed}: raise it"
        return None


class CallBounds:
    """The most that a call may cost, by the size of its prompt and the limit of its reply.

    No tokenizer makes more tokens than there are bytes, so the first prompts of a role are bounded by their bytes.
    Later prompts are bounded by the most tokens per byte that the backbone has counted for the role, and a quarter
    more. A reply is bounded by its limit, or by the longest reply so far if a backbone exceeded its limit.
    """

    def __init__(self) -> None:
        self._share: dict[str, float] = {}
        self._reply: dict[str, int] = {}
        self._usd: dict[str, float] = {}
        self._ways: dict[int, tuple[Limited | None, Priced | None]] = {}

    def bound_call(self, backbone: Backbone, request: PreparedRequest) -> Cost:
        """Return the bound of a call."""
        role = request.role
        share = self._share[role] * _MARGIN if role in self._share else 1.0
        prompt = math.ceil(_size(request) * share)
        longest = self._reply.get(role)
        limited, priced = self._ways.get(id(backbone)) or self._ways.setdefault(id(backbone), _ways_of(backbone))
        limit = None if limited is None else limited.reply_limit(role)
        if limit is None:
            limit = UNKNOWN_REPLY if longest is None else math.ceil(longest * _MARGIN)
        reply = max(limit, longest or 0)
        usd = None if priced is None else priced.dollars(Usage(prompt=prompt, completion=reply, cached=0))
        return Cost(calls=1, tokens=prompt + reply, usd=self._usd.get(role, 0.0) if usd is None else usd)

    def learn(self, request: PreparedRequest, usage: Usage) -> None:
        """Take note of what a call did cost."""
        role = request.role
        if usage.prompt:
            self._share[role] = max(self._share.get(role, 0.0), usage.prompt / _size(request))
        if usage.completion is not None:
            self._reply[role] = max(self._reply.get(role, 0), usage.completion)
        if usage.usd is not None:
            self._usd[role] = max(self._usd.get(role, 0.0), usage.usd)


def _ways_of(backbone: Backbone) -> tuple[Limited | None, Priced | None]:
    """Return a backbone as ``Limited`` and as ``Priced``. The result is kept, because a protocol check takes 10 µs."""
    return backbone if isinstance(backbone, Limited) else None, backbone if isinstance(backbone, Priced) else None


def longest_reply(backbone: Backbone, role: str) -> int | None:
    """Return the most tokens of a reply for estimates, ``None`` for a backbone without a model.

    A reply without a limit is assumed to have 4,096 tokens, or half the context if that is not longer.
    """
    if not isinstance(backbone, Limited):
        return None
    limit, length = backbone.reply_limit(role) or UNKNOWN_REPLY, backbone.context_length
    return limit if length is None or limit < length else length // 2


def _size(request: PreparedRequest) -> int:
    """Return the bytes of a prompt with its schema, which servers put into the prompt."""
    texts = [str(request.schema), *(message.content for message in request.messages)]
    return _FRAME_BYTES + sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


class Stop:
    """Holds the first reason to stop, if any. Safe to use from threads and signal handlers."""

    def __init__(self) -> None:
        self._reason: Stopped | None = None
        # SimpleQueue is reentrant: a signal handler may fill it while another use is interrupted; an Event is not.
        self._requests: SimpleQueue[Stopped] = SimpleQueue()

    def request(self, reason: Stopped) -> None:
        """Request the end of the run."""
        self._reason = self._reason or reason
        self._requests.put(reason)

    def check(self) -> None:
        """Raise the reason if a stop was requested."""
        if self._reason is not None:
            raise type(self._reason)(self._reason.reason)

    def next_request(self, timeout: float) -> Stopped | None:
        """Wait some seconds for a new request."""
        try:
            return self._requests.get(timeout=timeout)
        except Empty:
            return None
