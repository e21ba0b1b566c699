"""The reader as an agent with tools: it calls the tool of the nearest lesson and says what came back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ace_bench.backbones.embedded.items import choose
from ace_bench.backbones.embedded.kinds import entries_of
from ace_bench.backbones.embedded.kinds.tools import NO_CALL, ToolItem, has_failed, read_calls, write_calls
from ace_bench.backbones.embedded.lessons import one_line
from ace_bench.backbones.embedded.prompt_parser import parse_prompt
from ace_bench.backbones.embedded.roles import reply
from ace_bench.core.replies import TOOLS, ToolCall, ToolResult, ToolTurn, read_turn, write_turn
from ace_bench.core.types import Message, Record

_GAVE_UP = "I do not know."


def use_tools(messages: Sequence[Message], offered: Record) -> str:
    """The reply to messages with tools, as ``core.replies`` writes it.

    A call that returned an error is followed by the next best one, results without errors by an answer that repeats
    them. Where no tool has a word of the question, the reply is the one without tools.
    """
    index = max((n for n, message in enumerate(messages) if message.role == "user"), default=len(messages) - 1)
    later = messages[index + 1 :]
    turns = [read_turn(message.content, ToolTurn) for message in later if message.role == "assistant"]
    last = max((n for n, message in enumerate(later) if message.role == "assistant"), default=len(later))
    results = [
        read_turn(message.content, ToolResult).content for message in later[last + 1 :] if message.role == "tool"
    ]
    if results and not any(map(has_failed, results)):
        return write_turn(ToolTurn(content="\n".join(results)))
    before = [message for message in messages[: index + 1] if message.role in ("system", "user")]
    item = ToolItem(
        cue=one_line(messages[index].content),
        tools={tool["function"]["name"]: tool["function"] for tool in offered[TOOLS]},
        tried=frozenset(_write_calls_of(turn) for turn in turns),
        hint=" ".join(results),
    )
    best, cited = choose(item, entries_of(parse_prompt(before)))
    if best == NO_CALL:
        return write_turn(ToolTurn(content=_GAVE_UP if turns else reply(parse_prompt([*before]))))
    relied = f"I rely on {' '.join(f'[{name}]' for name in cited)}." if cited else ""
    calls = tuple(
        ToolCall(id=f"call-{len(turns)}-{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(read_calls(best))
    )
    return write_turn(ToolTurn(content=relied, tool_calls=calls))


def _write_calls_of(turn: ToolTurn) -> str:
    calls = []
    for call in turn.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            arguments = None
        calls.append((call.name, arguments if isinstance(arguments, dict) else {}))
    return write_calls(calls)
