"""Tools in the interface of backbones: what a request offers, and how messages and replies hold tool calls.

A request offers tools in place of a reply's schema, as both say what a reply may be. The contents of assistant and
tool messages, and the reply, are then JSON, so that budgets, records and caches hold tool calls as they hold any text::

    assistant and reply   {"content": "...", "tool_calls": [{"id": "...", "name": "...", "arguments": "{...}"}]}
    tool                  {"tool_call_id": "...", "content": "..."}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ace_bench.core.typed import decoder_of
from ace_bench.core.types import Record

_Turn = TypeVar("_Turn", bound=msgspec.Struct)
TOOLS, CHOICE = "tools", "tool_choice"


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool; ``arguments`` is JSON as the model wrote it, which may be broken."""

    id: str
    name: str
    arguments: str


class ToolTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says in a conversation with tools: text, calls or both."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returned for one call."""

    tool_call_id: str
    content: str


def offer(tools: Sequence[Record], choice: Any = None) -> Record:
    """Return the ``schema`` of a request with tools, which are described as in OpenAI's chat completions.

    Without tools it says that the conversation holds tool calls of earlier requests.
    """
    return {TOOLS: list(tools), **({} if choice is None else {CHOICE: choice})}


def is_offer(schema: Record | None) -> bool:
    """Whether the ``schema`` of a request offers tools; a JSON schema has no such keyword."""
    return schema is not None and TOOLS in schema


def takes_tools(part: object) -> bool:
    """Whether a backbone, or what passes calls to it, can be offered tools: it says so by ``takes_tools = True``."""
    return getattr(part, "takes_tools", False) is True


def write_turn(turn: ToolTurn | ToolResult) -> str:
    """Return the content of a message in a conversation with tools."""
    return msgspec.json.encode(turn).decode()


def read_turn(content: str, kind: type[_Turn]) -> _Turn:
    """Read what ``write_turn`` wrote; raises ``ValueError``."""
    turn: _Turn = decoder_of(kind).decode(content)
    return turn
