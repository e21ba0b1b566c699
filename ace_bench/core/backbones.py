"""Backbones: the interface that all have, and the optional ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from ace_bench.core.types import CacheCounters, Completion, Message, Probe, Record, ServerLoad, Usage

TokenCounter = Callable[[str], int]
"""Returns the length of a text in tokens, by the backbone's tokenizer or an estimate."""

_ANY_MODEL = frozenset({"llama_cpp", "openai_compatible", "vllm"})
"""Options that serve any model. Other options are named after their model."""


def backbone_name(option: str, model: str | None) -> str:
    """Return what titles call a backbone: the option, or the model's last name where the option serves any model."""
    return (option in _ANY_MODEL and model and model.rstrip("/").rpartition("/")[2]) or option


COMPACT_JSON = ("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}')
"""What makes vLLM, from 0.11 on, write JSON without free white space. Its requests cannot ask for that."""


def explain_blanks() -> str:
    """Return what to do about replies that end in blanks: a grammar of JSON may allow them without end."""
    return (
        f"start the server so that JSON holds no free white space (vLLM: {shlex.join(COMPACT_JSON)}; SGLang: "
        "--constrained-json-disable-any-whitespace)"
    )


def explain_all_reasoning() -> str:
    """Return why a reply that ended by itself has no text but thoughts, with the fix."""
    return (
        "the server reports all of it as reasoning. Start the server without --reasoning-parser, or let the model "
        "think: +backbone.extra_body.chat_template_kwargs.enable_thinking=true (thinking=true for DeepSeek)"
    )


GENERATOR, JUDGE, EMBEDDER = "generator", "judge", "embedder"
"""Roles that a run with any method may have."""


class Backbone(Protocol):
    """A chat-completions model."""

    name: str
    simulated: bool
    """True if replies, tokens or cache figures do not come from a language model."""
    context_length: int | None
    """Most tokens of a prompt and its reply together; ``None`` if unlimited or unknown."""

    @property
    def identity(self) -> Record:
        """All settings but the seed that affect replies (model, sampling); part of cache keys and run digests."""

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Make one call. ``session`` groups the calls of one rollout; ``schema`` is the JSON schema of the reply, or
        the tools that it may call (``replies.offer``), for a backbone with ``takes_tools = True``. One with
        ``asks_again = True`` takes ``may_repeat``, which it asks before it repeats a request whose reply was paid for.

        Raises ``RolloutFault`` with owner ``backbone`` if all retries failed, or with owner ``model`` if the model
        cannot or will not answer (kind ``context_length`` for a prompt that is too long). Raises
        ``BackboneUnavailable`` if no later call can succeed either.
        """

    def count(self, text: str) -> int:
        """Count tokens with the model's tokenizer, or estimate them if it is unknown."""


class Lm(Protocol):
    """A backbone bound to a role and a session."""

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Make one call, which the run counts and records."""


@runtime_checkable
class Keyed(Protocol):
    """A backbone that needs a key in the environment or a program on this machine."""

    def check(self) -> None:
        """Raise ``SettingError`` if the key or program is missing; sends and starts nothing."""


@runtime_checkable
class Probing(Protocol):
    """A backbone that can be checked by one tiny call before a run starts."""

    def probe(self) -> Probe:
        """Check endpoint, key, model, structured output and token reports.

        Raises ``ConfigError`` with the fix, or ``BackboneUnavailable`` if the backbone may answer later.
        """


@runtime_checkable
class Served(Probing, Protocol):
    """A backbone behind an endpoint, where one probe can speak for many runs."""

    @property
    def probe_key(self) -> str | None:
        """A key that is equal if two probes send and check the same: address, model, API key and so on.

        ``None`` if the endpoint exists only once the backbone has started it.
        """

    def take_probe(self, probe: Probe) -> None:
        """Go on with what the probe of another backbone with this key found out, in place of calls of its own."""


@runtime_checkable
class Launching(Protocol):
    """A backbone that may start a server; the backbones of several runs can have their ``servers`` in common."""

    servers: Any


@runtime_checkable
class Answering(Protocol):
    """A backbone that can be asked in the middle of a run whether it answers."""

    def answers(self, *, role: str, schema: Record | None) -> bool:
        """Whether it answers a tiny call now, with the settings of a role; no call of the run counts it."""


@runtime_checkable
class Adaptive(Protocol):
    """A backbone whose probe finds out how to speak to it; a continued run goes on as it began."""

    def adopt(self, recorded: Record) -> None:
        """Take what was found out from the settings of a recorded call, which hold the backbone's identity."""


@runtime_checkable
class Interruptible(Protocol):
    """A backbone whose calls can be cancelled. Calls of other backbones run to their end."""

    def interrupt(self, grace: float) -> None:
        """Cancel waits between retries at once and requests after ``grace`` seconds; called from another thread.

        The cancelled calls and all later ones raise ``Interrupted``.
        """


@runtime_checkable
class Priced(Protocol):
    """A backbone with token prices."""

    def dollars(self, usage: Usage) -> float | None:
        """Return the price of some tokens; ``None`` if a price or a count is unknown."""


@runtime_checkable
class ListPriced(Priced, Protocol):
    """A backbone that can take its prices from a price list."""

    @property
    def price_list(self) -> str | None:
        """The list and its version; ``None`` if the prices are set, or unknown."""


@runtime_checkable
class Limited(Protocol):
    """A backbone that limits the length of its replies, so that a budget can reserve them."""

    def reply_limit(self, role: str) -> int | None:
        """Return the most tokens of a reply to a role; ``None`` if they are not limited."""


@runtime_checkable
class Sampled(Backbone, Protocol):
    """A backbone that may draw its replies at random."""

    def draws(self, role: str) -> bool:
        """Whether a role's prompt may get another reply when it is sent again."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        session: str,
        schema: Record | None = None,
        seed: int | None = None,
    ) -> Completion:
        """Make one call, with ``seed`` in place of the backbone's own unless it sends none."""


@runtime_checkable
class Greedy(Protocol):
    """A backbone that knows whether it draws its replies."""

    def is_greedy(self, role: str) -> bool:
        """Whether every seed gives the same reply to a role's prompt, as at temperature 0."""


@runtime_checkable
class CacheReporting(Protocol):
    """A backbone whose server reports the hits of its prefix cache."""

    def cache_counters(self) -> CacheCounters | None:
        """Return the current counters; ``None`` if the server does not report them."""


@runtime_checkable
class LoadReporting(Protocol):
    """A backbone whose server reports how many requests it runs, and how many wait in it."""

    @property
    def server(self) -> str:
        """Address of the server; the same for all backbones that use it."""

    def load(self) -> ServerLoad | None:
        """Return the load at the moment; ``None`` if the server does not report it."""
