"""Builds the body and headers of a request, in the dialect of the protocol that an endpoint understands.

A dialect is how JSON replies are asked for, and whether there is a system role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

import msgspec

from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.schemas import response_format
from ace_bench.backbones.openai_compatible.settings import ChatSettings, Structured, TokenLimitField
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.prompts import REFUSED
from ace_bench.core.replies import CHOICE, TOOLS, ToolResult, ToolTurn, is_offer, read_turn
from ace_bench.core.types import Message, Record

AUTO = "auto"
_NO_SYSTEM = re.compile(
    r"(system|developer) (role|message|prompt|instruction)|\brole\b.{0,40}'?system|roles? must alternate"
    r"|only user and assistant",
    re.I,
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """``structured`` is how JSON replies are asked for.

    Without ``system_role`` the system message is put before the first user message.
    """

    structured: Structured
    system_role: bool = True

    def record(self) -> Record:
        """Return the dialect for identities and recorded calls; what every endpoint understands is left out."""
        usual = Dialect(structured=self.structured)
        unusual = {name: value for name, value in vars(self).items() if value != getattr(usual, name)}
        return {"structured": self.structured, **unusual}

    def words(self) -> str:
        """Describe the dialect for the console."""
        return ", ".join([self.structured, *([] if self.system_role else ["no system role"])])

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the endpoint takes them."""
        if self.system_role or len(messages) < 2 or messages[0].role != "system" or messages[1].role != "user":
            return messages
        merged = replace(messages[1], content=f"{messages[0].content}\n\n{messages[1].content}")
        return (merged, *messages[2:])


def read_dialect(recorded: Record) -> Dialect:
    """Return the dialect that ``record`` described."""
    return Dialect(**{field_.name: recorded[field_.name] for field_ in fields(Dialect) if field_.name in recorded})


def candidates(structured: Structured) -> Sequence[Dialect]:
    """Return the dialects to try, the best first. Unless the setting is ``auto`` there is only one."""
    if structured != AUTO:
        return (Dialect(structured=structured),)
    kinds: tuple[Structured, ...] = ("json_schema", "json_object_schema", "json_object", "none")
    return [Dialect(structured=kind) for kind in kinds]


def refuses_system_role(problem: Problem) -> bool:
    """Whether a server refused a request for its system message."""
    return problem.kind == REFUSED and bool(_NO_SYSTEM.search(problem.message))


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
    """Builds requests that hold the settings. ``salt`` is the cache's, drawn already."""

    settings: ChatSettings
    salt: str | None

    def build(self, question: Question, dialect: Dialect) -> tuple[bytes, Mapping[str, str]]:
        """Return the encoded body and the headers."""
        messages, schema = dialect.messages(question.messages), question.schema
        fields = {**self.fields(question.role), **question.changes, "messages": messages}
        if schema is not None and is_offer(schema):
            fields |= _tool_fields(schema, messages)
        elif schema is not None:
            if (bounds := self.settings.bounds) is not None:
                schema = bounds.apply(schema)
            requested = response_format(schema, dialect.structured)
            fields |= {} if requested is None else {"response_format": requested}
        headers: dict[str, str] = {}
        cache = self.settings.cache
        if cache.session_field or cache.session_header:
            # Session ids hold sample ids of any length and script; servers want a short plain token.
            short = digest_of_text(question.session)[:32]
            if cache.session_field:
                fields[cache.session_field] = short
            if cache.session_header:
                headers[cache.session_header] = short
        return msgspec.json.encode(fields), headers

    def fields(self, role: str = "") -> dict[str, Any]:
        """Return the fields of every request of a role."""
        sampling = self.settings.sampling.for_role(role)
        fields = {
            "model": self.settings.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            sampling.max_tokens_field: sampling.max_tokens,
            "seed": sampling.seed,
            "cache_salt": self.salt,
        }
        return {
            **{name: value for name, value in fields.items() if value is not None},
            **(self.settings.extra_body or {}),
        }

    def reply_limit(self, role: str) -> int | None:
        """Return the most tokens of a reply to a role, ``None`` if no limit is sent."""
        fields = self.fields(role)
        sent = [fields[name] for name in get_args(TokenLimitField) if isinstance(fields.get(name), int)]
        return max(sent, default=None)


def _tool_fields(schema: Record, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the fields of a request that offers tools; if none are offered, only the messages."""
    fields: dict[str, Any] = {"messages": [_with_tools(message) for message in messages]}
    if schema[TOOLS]:
        fields |= {name: schema[name] for name in (TOOLS, CHOICE) if name in schema}
    return fields


def _with_tools(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        result = read_turn(message.content, ToolResult)
        return {"role": "tool", "tool_call_id": result.tool_call_id, "content": result.content}
    if message.role != "assistant":
        return {"role": message.role, "content": message.content}
    turn = read_turn(message.content, ToolTurn)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in turn.tool_calls
    ]
    return {"role": "assistant", "content": turn.content, **({"tool_calls": calls} if calls else {})}
