"""Tools between this harness's messages (``core.tools``) and the chat-completions protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ace_bench.core.replies import without_surrogates
from ace_bench.core.tools import CHOICE, TOOLS, ToolCall, ToolResult, ToolTurn, read_turn
from ace_bench.core.types import Message, Record


def tool_fields(schema: Record, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the fields of a request that offers tools; without tools in the offer only the messages."""
    fields: dict[str, Any] = {"messages": [_sent(message) for message in messages]}
    if schema[TOOLS]:
        fields |= {name: schema[name] for name in (TOOLS, CHOICE) if name in schema}
    return fields


def read_calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read the calls of a reply. Entries without a function name cannot be answered and are left out."""
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    functions = ((call.get("id"), call.get("function")) for call in calls)
    return tuple(
        ToolCall(id=_text(name), name=_text(function["name"]), arguments=_text(function.get("arguments")) or "{}")
        for name, function in functions
        if isinstance(function, dict) and function.get("name")
    )


def _sent(message: Message) -> dict[str, Any]:
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


def _text(value: Any) -> str:
    return "" if value is None else without_surrogates(str(value))
