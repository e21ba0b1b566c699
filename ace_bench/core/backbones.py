"""What a backbone offers: one call, and what some can do besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ace_bench.core.types import CacheCounters, Completion, Message, Probe, Record, Usage

TokenCounter = Callable[[str], int]
"""Length of a text in tokens, by a backbone's tokenizer or an estimate of it."""


class Backbone(Protocol):
    """A chat-completions model."""

    name: str
    simulated: bool
    """True where replies, tokens or cache figures do not come from a language model."""
    identity: Record
    """Everything but messages and seed that decides an answer (model, sampling); part of cache keys and digest."""
    context_length: int | None
    """Most tokens of a prompt and its reply together; ``None`` where there is no limit or it is not known."""

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Answer once. ``session`` groups the calls of one rollout; ``schema`` is the JSON schema of the reply.

        Raises ``RolloutFault``: with owner ``backbone`` where there is no answer after its own retries, with owner
        ``model`` where the model cannot or will not answer (kind ``context_length`` for a prompt that is too long).
        Raises ``BackboneUnavailable`` where no further call can succeed.
        """
        ...

    def count(self, text: str) -> int:
        """Count tokens with the model's tokenizer where known, else an estimate."""
        ...


class Lm(Protocol):
    """A backbone bound to a role and a session: the hand an agent or a role holds."""

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once through the counted door."""
        ...


@runtime_checkable
class Keyed(Protocol):
    """A backbone that needs something of this machine: a key in the environment, a program."""

    def check(self) -> None:
        """Raise ``SettingError`` where that is missing; sends and starts nothing."""
        ...


@runtime_checkable
class Probing(Protocol):
    """A backbone that can be checked by one tiny call before a run spends anything."""

    def probe(self) -> Probe:
        """Check endpoint, key, model, structured output and token reports; raises ``ConfigError`` with the fix.

        Raises ``BackboneUnavailable`` where it does not answer now but may later.
        """
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A backbone whose calls can be ended early. The calls of others are waited for, or end with the process."""

    def interrupt(self, grace: float) -> None:
        """End pauses at once and requests after ``grace`` seconds; called from another thread.

        Calls under way and later ones raise ``Interrupted``.
        """
        ...


@runtime_checkable
class Priced(Protocol):
    """A backbone that knows what its tokens cost."""

    def dollars(self, usage: Usage) -> float | None:
        """Price some tokens; ``None`` where a price or a count is unknown."""
        ...


@runtime_checkable
class CacheReporting(Protocol):
    """A backbone whose server counts its own prefix-cache reuse."""

    def cache_counters(self) -> CacheCounters | None:
        """Read the counters now; ``None`` where the server does not report them."""
        ...
