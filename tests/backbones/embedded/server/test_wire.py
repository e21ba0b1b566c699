"""What the server sends for each request of the protocol: one connection, every reply compared as a whole."""

import http.client
import json
import re
from urllib.parse import urlsplit

from tests.backbones.embedded.conftest import tool
from tests.backbones.embedded.server.conftest import QUESTION

TOOLS = [
    tool("add", "Add numbers.", a={"type": "integer"}, b={"type": "integer"}),
    tool("weather", "Weather in a city.", city={"type": "string"}, days={"type": "integer"}),
    tool("climate", "Averages by place.", place={"type": "string"}),
]
STRICT = [tool("weather", "Weather in a city.", city={"type": "string"}, unit={"enum": ["C", "F"]})]
STRICT[0]["function"]["strict"] = True
COLOUR = "Choose from: red, light green. What is the colour of a light green frog?"
PARIS = "What will the weather in Paris be for the next 3 days?"
LESSON = "When asked \"How warm is Rome in June?\", call `climate(place='Rome'); weather(city='Rome', days=1)`."
TAUGHT = {"role": "system", "content": f"<playbook>\n[api-00001] {LESSON}\n</playbook>"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris", "days": 3}'}}
CALLED = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
IMAGE = [{"type": "image_url", "image_url": {"url": "x"}}]
COLOURS = {"type": "object", "properties": {"colour": {"type": "string"}, "legs": {"type": "integer"}}}


def user(text):
    return {"role": "user", "content": text}


def result(text):
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def schema_form(schema):
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


CHATS = [
    *({"temperature": 0, "seed": 1, "max_tokens": 9, "messages": [user(QUESTION + " " * 500)]} for _ in range(2)),
    {"messages": [{"role": "developer", "content": [{"type": "text", "text": t} for t in ("Answer. ", QUESTION)]}]},
    {"n": 2, "messages": [user(COLOUR)]},
    {"stream": True, "messages": [user(COLOUR)]},
    {"stream": True, "stream_options": {"include_usage": True}, "n": 2, "messages": [user(COLOUR)]},
    {"stream": True, "response_format": {"type": "json_object"}, "messages": [user(COLOUR)]},
    {"response_format": {"type": "text"}, "messages": [user(COLOUR)]},
    {"response_format": schema_form(COLOURS), "messages": [user(COLOUR)]},
    {"tools": TOOLS, "messages": [user(PARIS)]},
    {"tools": TOOLS, "stream": True, "messages": [user(PARIS)]},
    {"tools": TOOLS, "messages": [user(PARIS), *CALLED, result("Rain.")]},
    {"messages": [user(PARIS), *CALLED, result("Rain.")]},
    {"tools": TOOLS, "messages": [user(PARIS), *CALLED, result("Error: no forecast; see the climate averages.")]},
    {"tools": TOOLS, "messages": [TAUGHT, user("How warm is Lima in June?")]},
    {"tools": TOOLS, "parallel_tool_calls": False, "messages": [TAUGHT, user("How warm is Lima in June?")]},
    {"tools": TOOLS[:2], "messages": [TAUGHT, user("How warm is Lima in June?")]},
    {"tools": TOOLS, "messages": [user(QUESTION)]},
    {"tools": TOOLS, "tool_choice": "none", "messages": [user("Add 1 and 2.")]},
    {"tools": TOOLS, "tool_choice": "auto", "messages": [user("Add 17 and 25.")]},
    {"tools": TOOLS, "tool_choice": "required", "messages": [user(QUESTION)]},
    {"tools": TOOLS, "tool_choice": {"function": {"name": "climate"}}, "messages": [user(QUESTION)]},
    {"tools": STRICT, "messages": [user("The weather in Paris?")]},
    {"tools": TOOLS, "response_format": schema_form(COLOURS), "messages": [user(QUESTION)]},
    *({**more, "messages": [user("Add 1 and 2.")]} for more in (
        {"n": 0}, {"logprobs": True}, {"stream_options": {"include_usage": True}}, {"response_format": {"type": "xml"}},
        {"response_format": {"type": "json_schema"}}, {"response_format": schema_form({"not": {}})}, {"model": "gpt"},
        {"model": 7}, {"tools": TOOLS, "tool_choice": "sometimes"}, {"tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "sing"}}},
        {"functions": [{"name": "add"}]}, {"tools": [{"type": "web_search"}]},
    )),
    *({"messages": some} for some in ([], [{"role": "robot", "content": "x"}], [user(IMAGE)], [user(7)])),
]  # fmt: skip
CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"
REQUESTS = [
    *(("POST", CHAT, {"model": "embedded", **chat}) for chat in CHATS),
    *(("POST", CHAT, body) for body in ("{", "[]", "{}", "[" * 99_999)),
    ("POST", EMBEDDINGS, {"model": "embedded", "input": "frog", "encoding_format": "base64"}),
    ("POST", EMBEDDINGS, {"model": "embedded", "input": ["a frog", "a green frog"]}),
    *(("POST", EMBEDDINGS, {"model": "embedded", "input": text}) for text in ("", [], 7)),
    *(("POST", path, {"model": "embedded"}) for path in ("/v1/responses", "/v1/other?x=1")),
    *(("GET", path, None) for path in (CHAT, EMBEDDINGS, "/nowhere", "/health", "/v1/models/", "/v1/models/embedded")),
    ("GET", "/stats", None),
]


def shorten(text):
    """Leave the time out, and most of the numbers of vectors."""
    text = re.sub(r'"created": \d{9,}', '"created": 0', text)
    return re.sub(r'"embedding": (\[[^\]]{60}|"[^"]{60})[^\]"]*', r'"embedding": \1...', text)


def test_every_request_gets_its_reply(snapshot, serve):
    connection = http.client.HTTPConnection(urlsplit(serve().address).netloc, timeout=20)
    lines = []
    for method, path, body in REQUESTS:
        sent = body if isinstance(body, str) else json.dumps(body)
        connection.request(method, path, body=None if body is None else sent)
        reply = connection.getresponse()
        kind = reply.headers["Content-Type"]
        lines.append(
            f"{method} {path} {sent[:300]}\n{reply.status} {kind} {reply.headers['Connection'] or ''}".rstrip()
        )
        lines.append(shorten(reply.read().decode()) + "\n")
    connection.close()
    assert "\n".join(lines) == snapshot
