"""What goes over the wire: sampling, structured output, hints to caches, headers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.backbones.openai_compatible.settings import CacheHints, Sampling
from tests.backbones.openai_compatible.scripted import PROMPT, client, complete, serving

pytestmark = pytest.mark.usefixtures("each_client")

SCHEMA = {"title": "Reply", "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def sent(**settings):
    schema = settings.pop("schema", None)
    with serving() as server:
        complete(server.url, schema=schema, **settings)
        (request,) = server.seen
    return request


def test_a_plain_call_sends_the_model_the_messages_and_the_sampling(each_client):
    path, headers, body = sent(sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=100, seed=7))
    assert path == "/v1/chat/completions"
    messages = [{"role": message.role, "content": message.content} for message in PROMPT]
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "seed": 7}
    assert body == {"model": "tiny", "messages": messages, **sampling}
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == "Bearer none"
    assert ("x-stainless-os" in headers) == (each_client == "openai")


def test_what_is_null_is_left_out_and_the_token_limit_has_the_name_the_server_wants():
    sampling = Sampling(temperature=None, max_tokens=50, max_tokens_field="max_completion_tokens")
    _, _, body = sent(sampling=sampling, extra_body={"reasoning_effort": "none"})
    assert body.keys() == {"model", "messages", "max_completion_tokens", "reasoning_effort"}


@pytest.mark.parametrize(
    ("role", "own", "temperature", "expected"),
    [
        ("generator", {"temperature": 1.0, "max_tokens": 900}, 0.0, {"temperature": 1.0, "max_tokens": 900}),
        ("generator", {"max_tokens": 900}, 0.0, {"temperature": 0.0, "max_tokens": 900}),
        ("generator", {"temperature": 1.0}, None, {"max_tokens": 100}),
        ("curator", {"temperature": 1.0, "max_tokens": 900}, 0.0, {"temperature": 0.0, "max_tokens": 100}),
    ],
    ids=["its own", "limit alone", "model without temperature", "another role"],
)
def test_a_role_can_have_a_temperature_and_a_limit_of_its_own(role, own, temperature, expected):
    sampling = Sampling(temperature=temperature, max_tokens=100, roles={role: own})
    body = sent(sampling=sampling)[2]
    assert {name: body[name] for name in ("temperature", "max_tokens") if name in body} == expected


@pytest.mark.parametrize(("structured", "expected"), [("none", None), ("json_object", {"type": "json_object"})])
def test_structured_output_can_be_a_json_object_or_left_to_the_prompt(structured, expected):
    assert sent(structured=structured, schema=SCHEMA)[2].get("response_format") == expected


def test_a_schema_is_sent_with_its_name_and_without_notes():
    schema = {name: value for name, value in SCHEMA.items() if name != "title"} | {"additionalProperties": False}
    asked = {"type": "json_schema", "json_schema": {"name": "Reply", "strict": True, "schema": schema}}
    assert sent(schema=SCHEMA)[2]["response_format"] == asked


def test_the_session_goes_where_it_is_wanted_as_a_short_plain_id():
    cache = CacheHints(session_header="X-Session-Id", session_field="prompt_cache_key")
    session = "evaluate/Prüfung/" + "x" * 200
    with serving() as server:
        backbone = client(server.url, cache=cache)
        for name in (session, session, "another"):
            backbone.complete(PROMPT, role="generator", session=name)
        ids = [(headers["x-session-id"], body["prompt_cache_key"]) for _, headers, body in server.seen]
    assert ids[0] == ids[1] != ids[2]
    assert ids[0][0] == ids[0][1]
    assert ids[0][0].isalnum()
    assert len(ids[0][0]) <= 64


def test_a_salt_is_sent_and_a_new_one_is_one_per_client():
    assert sent(cache=CacheHints(salt="pepper"))[2]["cache_salt"] == "pepper"
    with serving() as server:
        for _ in range(2):
            backbone = client(server.url, cache=CacheHints(salt="new"))
            for _ in range(2):
                backbone.complete(PROMPT, role="generator", session="s")
        salts = [body["cache_salt"] for body in server.asked()]
    assert salts[0] == salts[1] != salts[2] == salts[3]
    assert "new" not in salts


def test_headers_are_added_plain_and_from_the_environment_which_does_not_redirect_calls(monkeypatch):
    monkeypatch.setenv("GATEWAY_TOKEN", "t-123")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody-elses-key")
    _, headers, _ = sent(extra_headers={"X-Team": "ace"}, headers_from_env={"api-key": "GATEWAY_TOKEN"})
    found = [headers[name] for name in ("x-team", "api-key", "authorization")]
    assert found == ["ace", "t-123", "Bearer none"]


def test_many_threads_share_one_client():
    with serving() as server:
        backbone = client(server.url, connections=64)
        with ThreadPoolExecutor(64) as pool:
            sessions = [str(number) for number in range(256)]
            texts = list(pool.map(lambda s: backbone.complete(PROMPT, role="g", session=s).text, sessions))
        assert texts == ["fine"] * 256
        assert len(server.asked()) == 256
