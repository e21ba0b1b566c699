"""Calls of tools as text."""

import json

from ace_bench.core.replies import ToolCall, ToolTurn, offer, write_turn
from ace_bench.core.types import Message
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.kinds.tools import read_calls
from tests.packages.rehearsal.reader.conftest import tool


def test_only_calls_with_plain_arguments_are_read_and_broken_ones_do_no_harm():
    for text in ("", "add", "add(1)", "add(a=b)", "x = 1", "add(**{})", "add(a=open('x'))", "("):
        assert read_calls(text) == []
    turn = write_turn(ToolTurn(tool_calls=(ToolCall(id="1", name="add", arguments="{"),)))
    messages = [Message(role="user", content="Add 1 and 2."), Message(role="assistant", content=turn)]
    reply = EmbeddedBackbone().complete(
        messages, role="", session="", schema=offer([tool("add", "Add numbers.", a={}, b={})])
    )
    assert json.loads(reply.text)["tool_calls"][0]["name"] == "add"
