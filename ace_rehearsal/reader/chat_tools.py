"""Tools in the chat-completions protocol: what a request offers and holds of them, and calls in a reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ace_bench.core.tools import ToolCall, ToolResult, ToolTurn, offer, read_turn, write_turn
from ace_bench.core.types import Record
from ace_rehearsal.reader.bad_request import BadRequest


def read_offer(data: Mapping[str, Any], messages: Sequence[object]) -> Record | None:
    """The tools that a request offers; empty where only its messages hold tool calls, ``None`` without tools."""
    tools = data.get("tools") or []
    if not isinstance(tools, list) or not all(map(_is_function, tools)):
        raise BadRequest(400, "invalid_tools", "'tools' must be a list of functions, each with a name.")
    if data.get("tool_choice") not in (None, "auto", "none"):
        message = "This server chooses its tools itself; send tool_choice=auto or none."
        raise BadRequest(400, "unsupported_tool_choice", message)
    offered = tools if data.get("tool_choice") != "none" else []
    held = any(isinstance(item, dict) and (item.get("role") == "tool" or "tool_calls" in item) for item in messages)
    return offer(offered) if tools or held else None


def content_with_tools(item: Mapping[str, Any], content: str, place: int) -> str:
    """The content of a message in a conversation with tools (``core.tools``)."""
    if item["role"] == "tool":
        return write_turn(ToolResult(tool_call_id=str(item.get("tool_call_id")), content=content))
    if item["role"] != "assistant":
        return content
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list) or not all(map(_is_function, calls)):
        raise BadRequest(400, "invalid_tool_calls", f"messages[{place}].tool_calls must be a list of function calls.")
    return write_turn(
        ToolTurn(
            content=content,
            tool_calls=tuple(
                ToolCall(
                    id=str(call.get("id")),
                    name=call["function"]["name"],
                    arguments=str(call["function"].get("arguments")),
                )
                for call in calls
            ),
        )
    )


def reply_with_tools(text: str) -> Record:
    """The fields of a reply's message."""
    turn = read_turn(text, ToolTurn)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in turn.tool_calls
    ]
    return {"content": turn.content or None, **({"tool_calls": calls} if calls else {})}


def _is_function(one: object) -> bool:
    function = one.get("function") if isinstance(one, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
