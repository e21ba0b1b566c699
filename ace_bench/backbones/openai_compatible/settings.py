"""Groups of settings of an endpoint, and the price of its tokens (paper, section 4.7 and appendix A.3)."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.backbones.openai_compatible.azure import NOT_AZURE, Azure
from ace_bench.backbones.openai_compatible.schemas import Bounds
from ace_bench.core.errors import SettingError
from ace_bench.core.secrets import refuse_secrets
from ace_bench.core.settings import (
    Count,
    NotNegative,
    RoleSampling,
    Seconds,
    Seed,
    Text,
    Whole,
    make_part,
)
from ace_bench.core.types import Record, Usage

_UNSEEDED = ("seed", "max_tokens_field")
_MILLION = 1_000_000
_OWN_FIELDS = frozenset(("model", "messages", "stream", "n", "response_format", "cache_salt", "tools", "tool_choice"))
Pause = Annotated[float, Meta(ge=0, le=10_000_000)]
TokenLimitField = Literal["max_tokens", "max_completion_tokens"]
Structured = Literal["auto", "json_schema", "json_object_schema", "json_object", "none"]
"""``json_object_schema`` is the form of llama.cpp: ``json_object`` with the schema beside it."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the model writes; ``None`` leaves a field out of the request, for servers that reject it.

    ``max_tokens`` limits the reply, in the field that ``max_tokens_field`` names. ``seed`` is the run's; it does not
    enter the identity of a backbone, because the seeds of one experiment belong together. ``roles`` come from the
    top-level group ``sampling``. A field that requests leave out is also left out for roles.
    """

    temperature: NotNegative | None = 0.0
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Count | None = 4096
    max_tokens_field: TokenLimitField = "max_tokens"
    seed: Seed | None = None
    roles: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings of roles; raises ``ConfigError`` that names the wrong one."""
        checked = {role: make_part(RoleSampling, values, f"sampling.{role}") for role, values in self.roles.items()}
        object.__setattr__(self, "roles", checked)

    def for_role(self, role: str) -> Sampling:
        """Return the settings of a role."""
        of_role: RoleSampling | None = self.roles.get(role)
        if of_role is None:
            return self
        return replace(
            self,
            roles={},
            temperature=self.temperature if None in (self.temperature, of_role.temperature) else of_role.temperature,
            max_tokens=self.max_tokens if None in (self.max_tokens, of_role.max_tokens) else of_role.max_tokens,
        )

    def check_limits(self, context_length: int | None) -> None:
        """Raise ``SettingError`` if a reply may be as long as prompt and reply together."""
        limits = {"": self.max_tokens, **{role: self.for_role(role).max_tokens for role in self.roles}}
        for role, longest in limits.items():
            if context_length is not None and longest is not None and longest >= context_length:
                raise SettingError(
                    f"sampling.{role and f'roles.{role}.'}max_tokens={longest} leaves no room for a prompt in a "
                    f"context of {context_length} tokens: lower {f'sampling.{role}.max_tokens' if role else 'it'}, or "
                    "take a model with a longer context"
                )


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often and how long failed attempts are retried.

    There are at most ``times`` retries, and none whose pause would bring the time lost in failed attempts and pauses
    over ``seconds``. The n-th pause is ``first_pause * 2**n``, at most ``longest_pause``, shortened at random by up to
    a half; a server's Retry-After takes precedence. ``empty``: an empty reply is asked for once more.
    """

    times: Whole = 8
    seconds: Pause = 600.0
    first_pause: Pause = 0.5
    longest_pause: Pause = 30.0
    empty: bool = True


@dataclass(frozen=True, kw_only=True)
class CacheHints:
    """Fields and headers with which a server or router selects a prefix cache.

    ``session_header`` and ``session_field`` (a field of the request, such as ``prompt_cache_key`` or ``user``)
    carry an id of the rollout. ``salt`` goes into vLLM's ``cache_salt``: calls share a cache only under the same
    salt; ``new`` draws one per process, for a cold start.
    """

    session_header: Text | None = None
    session_field: Text | None = None
    salt: Text | None = None


@dataclass(frozen=True, kw_only=True)
class PriceCard:
    """Dollars per million tokens; ``None`` is unknown. A provider without a discount has ``cached_input = input``.

    A card without any price stands for the list's prices (``list_prices``).
    """

    input: NotNegative | None = None
    cached_input: NotNegative | None = None
    output: NotNegative | None = None

    @property
    def source(self) -> str | None:
        """The list that the prices come from; ``None`` for prices of the configuration."""
        return None

    def call_dollars(self, usage: Usage) -> float | None:
        """Return the price of one call; ``None`` if a price or token count is unknown."""
        return self.dollars(usage)

    def dollars(self, usage: Usage) -> float | None:
        """Return the price of some tokens; ``None`` if a price or token count is unknown."""
        parts = (self.input_dollars(usage.prompt, usage.cached), _cost(usage.completion, self.output))
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]

    def input_dollars(self, prompt: int | None, cached: int | None) -> float | None:
        """Return the price of the input; ``cached`` tokens have their own price."""
        if prompt is None or self.input is None:
            return None
        if self.cached_input == self.input:
            return _cost(prompt, self.input)
        if cached is None:
            return None
        reused_tokens = min(cached, prompt)
        fresh, reused = _cost(prompt - reused_tokens, self.input), _cost(reused_tokens, self.cached_input)
        return None if fresh is None or reused is None else fresh + reused


def _cost(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price / _MILLION


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where to send requests and as whom.

    ``api_key_env`` names the environment variable of the key, ``None`` if the server needs none;
    ``headers_from_env`` maps further secret headers to their variables. ``timeout`` is in seconds an attempt, from its
    start to its last byte.
    """

    base_url: Text
    model: Text | None
    api_key_env: Text | None = None
    extra_headers: Mapping[str, str] | None = None
    headers_from_env: Mapping[str, str] | None = None
    timeout: Seconds = 600.0
    azure: Azure = NOT_AZURE


@dataclass(frozen=True, kw_only=True)
class ChatSettings(Address):
    """The settings of a chat model behind an endpoint; raises ``SettingError`` for those that cannot work.

    ``structured`` is how JSON replies are requested: ``json_schema``, ``json_object_schema``, ``json_object`` or
    ``none`` (by the prompt alone); with ``auto`` the probe finds the best that the server takes. ``bound_replies``
    bounds the texts and lists of every schema that is sent. ``extra_body`` is merged into every request, for instance
    to switch reasoning off. ``context_length`` is in tokens, ``None``: as the server says. ``simulated`` marks an
    endpoint that is not a language model. ``aliases`` are other names of the same model, by which tables know it.
    """

    sampling: Sampling
    retry: Retry
    cache: CacheHints
    prices: PriceCard
    structured: Structured = "json_schema"
    bound_replies: bool | Bounds | None = None
    extra_body: Record | None = None
    context_length: Count | None = None
    simulated: bool = False
    aliases: Sequence[Text] = ()

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for settings that cannot work."""
        if not self.model:
            raise SettingError("model is not set: name the model as the server does")
        if self.bound_replies is True:
            raise SettingError(
                "bound_replies=true says no bounds: write {max_string: 200, max_items: 4} with the longest text and "
                "list of a reply, or null for none"
            )
        secret = {"base_url": self.base_url, "extra_headers": self.extra_headers, "extra_body": self.extra_body}
        refuse_secrets(secret)
        self.azure.check(base_url=check_url(self.base_url), api_key_env=self.api_key_env)
        self.sampling.check_limits(self.context_length)
        reserved = sorted(_OWN_FIELDS & (self.extra_body or {}).keys())
        if reserved:
            raise SettingError(f"extra_body.{reserved[0]} has a setting of its own, or is the harness's to decide")
        try:
            json.dumps(self.extra_body)
        except TypeError as error:
            raise SettingError(f"extra_body is not JSON: {error}") from error

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of replies, if there are any."""
        return self.bound_replies if isinstance(self.bound_replies, Bounds) else None

    @cached_property
    def identity(self) -> Record:
        """The settings that decide replies, but for the dialect: where requests are sent and the seed do not."""
        sampling = {name: value for name, value in asdict(self.sampling).items() if name not in _UNSEEDED}
        if not self.sampling.roles:
            del sampling["roles"]
        return {
            "model": self.model,
            "sampling": {**sampling, "seeded": self.sampling.seed is not None},
            "extra_body": self.extra_body or {},
            **({"bound_replies": asdict(self.bounds)} if self.bounds else {}),
        }


def check_url(url: str, name: str = "base_url", example: str = "http://localhost:8000/v1") -> str:
    """Return an address that requests can be sent to, the setting ``name``; raises ``SettingError``."""
    try:
        parts = urllib.parse.urlsplit(url or "")
        port = parts.port
    except ValueError as error:  # a port above 65535, brackets that do not close
        raise SettingError(f"{name}={url} must be like {example}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise SettingError(f"{name}={url} must be like {example}")
    if parts.query or parts.fragment:
        raise SettingError(f"{name} must end with its path, as in {example}: drop what follows")
    return url
