"""Tools in the chat-completions protocol: what a request offers and holds of them, and calls in a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ace_bench.core.tools import ToolCall, ToolResult, ToolTurn, offer, write_turn
from ace_bench.core.types import Record
from ace_rehearsal.reader.schema_values import BadRequest, build


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The tools that a reply may call: none where only earlier messages hold calls, one where it is named.

    ``must_call``: a reply without a call is not allowed; ``one_call``: nor are several calls.
    """

    tools: Sequence[Record]
    must_call: bool = False
    one_call: bool = False

    @property
    def schema(self) -> Record:
        """What a backbone takes."""
        return offer(self.tools)


def read_offer(data: Mapping[str, Any], messages: Sequence[object]) -> Offer | None:
    """The tools that a request offers, ``None`` without any; raises ``BadRequest``."""
    tools = data.get("tools") or []
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        message = "'tools' must be a list of functions, each with a name and parameters as a JSON schema."
        raise BadRequest(400, "invalid_tools", message)
    allowed, must_call = _chosen(tools, data.get("tool_choice"))
    held = any(isinstance(item, dict) and (item.get("role") == "tool" or "tool_calls" in item) for item in messages)
    if not tools and not held:
        return None
    return Offer(tools=allowed, must_call=must_call, one_call=data.get("parallel_tool_calls") is False)


def _chosen(tools: Sequence[Record], choice: Any) -> tuple[Sequence[Record], bool]:
    """The tools that ``tool_choice`` leaves, and whether one of them must be called."""
    if choice in (None, "auto"):
        return tools, False
    if choice == "none":
        return [], False
    if not tools:
        raise BadRequest(400, "invalid_tool_choice", "'tool_choice' needs 'tools' to choose from.")
    if choice == "required":
        return tools, True
    if not _is_function(choice):
        message = "'tool_choice' must be auto, none, required or a function by its name."
        raise BadRequest(400, "invalid_tool_choice", message)
    name = choice["function"]["name"]
    named = [tool for tool in tools if tool["function"]["name"] == name]
    if not named:
        raise BadRequest(400, "invalid_tool_choice", f"'tool_choice' names {name!r}, which 'tools' does not hold.")
    return named[:1], True


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


def calls_as_offered(turn: ToolTurn, offered: Offer, number: int) -> ToolTurn:
    """What the reader says, with a call where one must be made and arguments that obey the schemas of strict tools.

    ``number`` tells the calls of one request from those of others.
    """
    calls = turn.tool_calls[: 1 if offered.one_call else None]
    if not calls and offered.must_call:
        function = offered.tools[0]["function"]
        arguments = build(function.get("parameters") or {"type": "object"}, turn.content)
        call = ToolCall(id=f"call-{number}", name=function["name"], arguments=json.dumps(arguments))
        return ToolTurn(tool_calls=(call,))
    functions = {tool["function"]["name"]: tool["function"] for tool in offered.tools}
    return ToolTurn(content=turn.content, tool_calls=tuple(_obedient(call, functions[call.name]) for call in calls))


def _obedient(call: ToolCall, function: Record) -> ToolCall:
    if not function.get("strict"):
        return call
    arguments = build(function.get("parameters") or {"type": "object"}, json.loads(call.arguments))
    return ToolCall(id=call.id, name=call.name, arguments=json.dumps(arguments))


def message_with_tools(turn: ToolTurn) -> Record:
    """The fields of a reply's message."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in turn.tool_calls
    ]
    return {"content": turn.content or None, **({"tool_calls": calls} if calls else {})}


def _is_tool(one: object) -> bool:
    return _is_function(one) and isinstance(one["function"].get("parameters") or {}, dict)  # type: ignore[index]


def _is_function(one: object) -> bool:
    function = one.get("function") if isinstance(one, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
