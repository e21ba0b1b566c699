"""Builds the body and headers of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from ace_bench.backbones.openai_compatible.bounds import Bounds, share_limit
from ace_bench.backbones.openai_compatible.dialects import Dialect
from ace_bench.backbones.openai_compatible.endpoint import encode
from ace_bench.backbones.openai_compatible.schemas import response_format
from ace_bench.backbones.openai_compatible.settings import CacheHints, Sampling, TokenLimitField
from ace_bench.backbones.openai_compatible.tool_calls import tool_fields
from ace_bench.core.digest import digest_of_text
from ace_bench.core.errors import SettingError
from ace_bench.core.tools import is_offer
from ace_bench.core.types import Message, Record

_OWN_FIELDS = frozenset(("model", "messages", "stream", "n", "response_format", "cache_salt", "tools", "tool_choice"))


@dataclass(frozen=True, kw_only=True)
class Question:
    """What one call asks; ``changes`` replace fields of the request."""

    messages: Sequence[Message]
    session: str
    role: str = ""
    schema: Record | None = None
    changes: Record = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RequestBuilder:
    """The settings that every request holds. ``salt`` is the cache's, drawn already."""

    model: str
    sampling: Sampling
    cache: CacheHints
    salt: str | None
    extra_body: Record
    bound_replies: bool | Bounds

    def build(self, question: Question, dialect: Dialect) -> tuple[bytes, Mapping[str, str]]:
        """Return the encoded body and the headers."""
        messages, schema = dialect.messages(question.messages), question.schema
        fields = {**self.fields(question.role), **question.changes, "messages": messages}
        if schema is not None and is_offer(schema):
            fields |= tool_fields(schema, messages)
        elif schema is not None:
            requested = response_format(self._bounded(schema, question.role, dialect), dialect.structured)
            fields |= {} if requested is None else {"response_format": requested}
        headers: dict[str, str] = {}
        if self.cache.session_field or self.cache.session_header:
            # Session ids hold sample ids of any length and script; servers want a short plain token.
            short = digest_of_text(question.session)[:32]
            if self.cache.session_field:
                fields[self.cache.session_field] = short
            if self.cache.session_header:
                headers[self.cache.session_header] = short
        return encode(fields), headers

    def fields(self, role: str = "") -> dict[str, Any]:
        """Return the fields of every request of a role."""
        sampling = self.sampling.of(role)
        fields = {
            "model": self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            sampling.max_tokens_field: sampling.max_tokens,
            "seed": sampling.seed,
            "cache_salt": self.salt,
        }
        return {**{name: value for name, value in fields.items() if value is not None}, **self.extra_body}

    def reply_limit(self, role: str) -> int | None:
        """Return the most tokens of a reply to a role, ``None`` if no limit is sent."""
        fields = self.fields(role)
        sent = [fields[name] for name in get_args(TokenLimitField) if isinstance(fields.get(name), int)]
        return max(sent, default=None)

    def _bounded(self, schema: Record, role: str, dialect: Dialect) -> Record:
        if isinstance(self.bound_replies, Bounds):
            return self.bound_replies.apply(schema)
        longest = self.sampling.of(role).max_tokens
        return share_limit(schema, longest) if dialect.bounded and longest is not None else schema


def check_extra_body(extra_body: Record) -> Record:
    """Return a copy; raises ``SettingError`` for fields that are not the user's to set, or are not JSON."""
    own = sorted(_OWN_FIELDS & extra_body.keys())
    if own:
        raise SettingError(f"extra_body.{own[0]} has a setting of its own, or is the harness's to decide")
    try:
        encode(extra_body)
    except TypeError as error:
        raise SettingError(f"extra_body is not JSON: {error}") from error
    return dict(extra_body)
