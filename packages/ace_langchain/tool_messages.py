"""LangChain's messages with tool calls as the contents of this harness's messages (``core.replies``), and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolMessage
from langchain_core.messages import ToolCall as LangChainCall

from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, read_turn, write_turn


def has_tool_turns(messages: Sequence[BaseMessage]) -> bool:
    """Whether a conversation holds tool calls or results."""
    return any(isinstance(m, ToolMessage) or (isinstance(m, AIMessage) and m.tool_calls) for m in messages)


def written_assistant(message: AIMessage) -> str:
    """Return what a model said; calls that could not be read go back as the model wrote them."""
    read = [(call["id"], call["name"], json.dumps(call["args"])) for call in message.tool_calls]
    broken = [(call["id"], call["name"], call["args"]) for call in message.invalid_tool_calls]
    calls = tuple(ToolCall(id=i or "", name=n or "", arguments=a or "{}") for i, n, a in [*read, *broken])
    return write_turn(ToolTurn(content=str(message.text), tool_calls=calls))


def written_result(message: ToolMessage) -> str:
    """Return what a tool returned."""
    return write_turn(ToolResult(tool_call_id=message.tool_call_id, content=str(message.text)))


def read_reply(text: str) -> AIMessage:
    """Read the reply to a request with tools; calls whose arguments are not an object are invalid tool calls."""
    turn = read_turn(text, ToolTurn)
    calls: list[LangChainCall] = []
    broken: list[InvalidToolCall] = []
    for call in turn.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            calls.append(LangChainCall(name=call.name, args=arguments, id=call.id or None))
        else:
            broken.append(
                InvalidToolCall(
                    type="invalid_tool_call",
                    name=call.name,
                    args=call.arguments,
                    id=call.id or None,
                    error="the arguments are not a JSON object",
                )
            )
    return AIMessage(turn.content, tool_calls=calls, invalid_tool_calls=broken)
