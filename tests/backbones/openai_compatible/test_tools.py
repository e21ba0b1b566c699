"""Replies with tool calls: what is passed on, and what is a fault that was paid for."""

import json

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import offer
from tests.backbones.openai_compatible.scripted import answer, complete, serving

pytestmark = pytest.mark.usefixtures("each_client")

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def test_a_reply_of_calls_alone_is_not_empty():
    with serving(answer(None, tool_calls=[CALL, {"id": "c2"}, "odd"], ended="tool_calls")) as server:
        reply = complete(server.url, schema=offer([ADD], "auto"))
    assert json.loads(reply.text) == {
        "content": "",
        "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}'}],
    }
    (sent,) = server.asked()
    assert sent["tools"] == [ADD]
    assert sent["tool_choice"] == "auto"
    assert "response_format" not in sent


def test_text_is_passed_on_beside_offered_tools():
    with serving(answer("Cut.", ended="length")) as server:
        reply = complete(server.url, schema=offer([ADD]))
    assert json.loads(reply.text) == {"content": "Cut.", "tool_calls": []}


@pytest.mark.parametrize(
    ("reply", "schema", "kind"),
    [
        (answer("", tool_calls=[CALL], ended="length"), offer([ADD]), "length_truncated"),
        (answer("", tool_calls=[]), offer([ADD]), "empty_reply"),
        (answer("", tool_calls=[CALL]), None, "empty_reply"),
    ],
    ids=["cut", "empty", "nobody offered tools"],
)
def test_calls_that_cannot_be_used_are_faults_that_were_paid_for(reply, schema, kind):
    with serving(reply) as server, pytest.raises(RolloutFault) as caught:
        complete(server.url, schema=schema)
    assert caught.value.fault.kind == kind
    assert caught.value.paid.usage.prompt
