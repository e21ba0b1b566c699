"""Replies as clients ask for them, over HTTP: streams, several choices, JSON that obeys a schema."""

import http.client
import json
from urllib.parse import urlsplit

import jsonschema
import openai
import pytest
from pydantic import BaseModel

from ace_rehearsal.server.faults import Faults
from ace_rehearsal.server.requests import BadRequest
from ace_rehearsal.server.schema_values import obey
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.packages.rehearsal.reader.test_tools import tool

MESSAGES = [{"role": "user", "content": "Choose from: red, light green. What is the colour of a light green frog?"}]
ANSWER = "light green"


@pytest.fixture(scope="module")
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.address, api_key="none", max_retries=0, timeout=20) as client:
        yield client


def ask(client, **more):
    return client.chat.completions.create(model="embedded", **({"messages": MESSAGES} | more))


def test_a_stream_has_role_pieces_reason_and_usage(client):
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    *said, last, usage = chunks
    assert said[0].choices[0].delta.role == "assistant"
    pieces = [chunk.choices[0].delta.content for chunk in said]
    assert "".join(pieces) == ANSWER
    assert len([piece for piece in pieces if piece]) > 1
    assert [chunk.choices[0].finish_reason for chunk in said] == [None] * len(said)
    assert last.choices[0].finish_reason == "stop"
    assert usage.choices == []
    assert usage.usage.completion_tokens == ask(client).usage.completion_tokens
    assert all(chunk.usage is None for chunk in ask(client, stream=True))


def test_a_stream_ends_as_the_protocol_says_and_its_connection_lives_on(server):
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=20)
    for _ in range(2):
        body = json.dumps({"model": "embedded", "messages": MESSAGES, "stream": True})
        connection.request("POST", "/v1/chat/completions", body=body)
        reply = connection.getresponse()
        assert reply.headers["Content-Type"] == "text/event-stream"
        assert reply.read().endswith(b"\n\ndata: [DONE]\n\n")
    connection.close()


def test_tool_calls_are_streamed_with_their_arguments_in_pieces(client):
    offered = [tool("weather", "Weather in a city.", city={"type": "string"}, days={"type": "integer"})]
    asked = [{"role": "user", "content": "What will the weather in Paris be for 3 days?"}]
    with client.chat.completions.stream(model="embedded", messages=asked, tools=offered) as stream:
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls"
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"city": "Paris", "days": 3}


def test_a_stream_can_break_off():
    with (
        running(ReaderServer(host="127.0.0.1", port=0, faults=Faults(chances={"truncate": 1.0}))) as server,
        openai.OpenAI(base_url=server.address, api_key="none", max_retries=0, timeout=20) as client,
        pytest.raises(Exception, match=r"(?i)incomplete chunked read|connection error"),
    ):
        list(ask(client, stream=True))


def test_several_choices_are_the_same_answer(client):
    reply = ask(client, n=3)
    assert [(choice.index, choice.message.content) for choice in reply.choices] == [(n, ANSWER) for n in range(3)]
    assert reply.usage.completion_tokens == 3 * ask(client).usage.completion_tokens
    streamed = [chunk.choices[0] for chunk in ask(client, n=2, stream=True)]
    said = ["".join(one.delta.content or "" for one in streamed if one.index == index) for index in range(2)]
    assert said == [ANSWER, ANSWER]


class Step(BaseModel):
    thought: str
    sure: bool
    next: "Step | None"


class Answer(BaseModel):
    colour: str
    legs: int
    steps: list[Step]
    note: str | None


def test_the_client_s_own_types_are_parsed(client):
    reply = client.chat.completions.parse(model="embedded", messages=MESSAGES, response_format=Answer)
    assert reply.choices[0].message.parsed.colour == ANSWER
    streamed = "".join(
        chunk.choices[0].delta.content or ""
        for chunk in ask(client, stream=True, response_format={"type": "json_object"})
    )
    assert json.loads(streamed) == {"answer": ANSWER}


SCHEMAS = {
    "object": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 20}, "b": {"type": "boolean"}}},
    "no others": {"type": "object", "properties": {}, "additionalProperties": False},
    "recursive": {
        "$ref": "#/$defs/Tree",
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "v": {"const": 7}},
                "required": ["kids", "v"],
            }
        },
    },
    "union": {
        "anyOf": [
            {"type": "object", "properties": {"kind": {"const": "cat"}, "name": {"type": "string"}}},
            {"type": "object", "properties": {"kind": {"enum": ["dog"]}}, "required": ["kind"]},
        ]
    },
    "all of": {"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]}, {"required": ["b"]}]},
    "array": {"type": "array", "items": {"type": ["string", "null"]}, "minItems": 2, "maxItems": 3},
    "number": {"type": "number", "minimum": 0.5, "maximum": 0.75},
    "short text": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]},
}
TEXTS = ["", "a green frog weighs 12.5", '{"a": 25, "b": "x"}', '{"kind": "dog"}', "[1, [2], {}]", "null", "NaN"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_said_is_turned_into_json_that_obeys_the_schema(name):
    for text in TEXTS:
        jsonschema.validate(json.loads(obey(text, SCHEMAS[name])), SCHEMAS[name])


def test_a_reply_that_obeys_already_is_kept_to_the_letter():
    text = '{"b":true,  "a": 21}'
    assert obey(text, SCHEMAS["object"]) == text


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"not": {"type": "string"}}, "it uses not"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "no value of finite depth"),
        ({"type": "string", "pattern": r"^\d+$"}, "it uses pattern"),
        ({"type": "array", "items": {"type": "integer", "multipleOf": 5}, "minItems": 1}, "it uses multipleOf"),
        ({"$ref": "#/$defs/absent"}, "leads nowhere"),
        ({"type": "integer", "minimum": 1, "maximum": 0}, "no number lies within"),
        ({"type": "array", "minItems": 10**9}, "too many values"),
        ({"properties": 7}, "it is broken"),
        ({"enum": []}, "no options"),
        ({"type": "colour"}, "no type colour"),
    ],
)
def test_a_schema_that_cannot_be_obeyed_is_refused(schema, cause):
    with pytest.raises(BadRequest, match=cause):
        obey("green", schema)


def test_a_refused_schema_is_a_bad_request(client):
    described = {"name": "reply", "schema": {"not": {}}}
    with pytest.raises(openai.BadRequestError, match="cannot answer with this JSON schema: it uses not"):
        ask(client, response_format={"type": "json_schema", "json_schema": described})
