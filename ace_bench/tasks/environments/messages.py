"""Messages and tools as chat completions have them, from what environments hold."""

from __future__ import annotations

from ace_bench.core.replies import ToolResult, ToolTurn, write_turn
from ace_bench.core.types import Message, Record


def assistant_message(turn: ToolTurn, *, tools: bool) -> Message:
    """Return what a model said, as a message of a conversation with ``tools`` or without."""
    return Message(role="assistant", content=write_turn(turn) if tools else turn.content)


def tool_message(call: str, text: str) -> Message:
    """Return the result of the tool call with an id, as a message."""
    return Message(role="tool", content=write_turn(ToolResult(tool_call_id=call, content=text)))


def describe_tool(name: str, description: str, parameters: Record) -> Record:
    """Return a tool as chat completions offer it; ``parameters`` is a JSON schema."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
