"""What goes over the wire: sampling, structured output, hints to caches, headers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.agents.single_turn import GeneratorReply
from ace_bench.backbones.openai_compatible.schemas import response_format
from ace_bench.backbones.openai_compatible.settings import CacheHints, Sampling
from ace_bench.core.replies import schema_of
from ace_bench.methods.ace_parts import CuratorReply, ReflectorReply
from ace_bench.methods.ace_variants.ablations import MergerReply, RewriterReply
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
    assert body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Reply with JSON."},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 100,
        "seed": 7,
    }
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


def test_the_official_clients_environment_does_not_redirect_calls(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody-elses-key")
    _, headers, _ = sent()
    assert headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(
    ("structured", "expected"),
    [("none", None), ("json_object", {"type": "json_object"})],
)
def test_structured_output_can_be_a_json_object_or_left_to_the_prompt(structured, expected):
    assert sent(structured=structured, schema=SCHEMA)[2].get("response_format") == expected


def test_a_schema_is_sent_with_its_name_and_without_notes():
    asked = sent(schema=SCHEMA)[2]["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"] == {
        "name": "Reply",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize("kind", [GeneratorReply, ReflectorReply, CuratorReply, RewriterReply, MergerReply])
def test_the_roles_schemas_are_fit_for_strict_servers(kind):
    asked = response_format(schema_of(kind), "json_schema")["json_schema"]
    assert asked["strict"] is True
    assert_strict(asked["schema"])


def assert_strict(node):
    assert not node.keys() & {"default", "title", "description"}
    if node.get("type") == "object":
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
        for part in node["properties"].values():
            assert_strict(part)
    if node.get("type") == "array":
        assert_strict(node["items"])
    for part in node.get("anyOf", ()):
        assert_strict(part)


@pytest.mark.parametrize("open_part", [{}, {"type": "array"}, {"type": "object"}, {"anyOf": [{"type": "string"}, {}]}])
def test_a_schema_that_leaves_something_open_is_not_called_strict(open_part):
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": open_part}, "required": ["b"]}
    asked = response_format(schema, "json_schema")["json_schema"]
    assert asked["strict"] is False
    assert asked["schema"] == schema


def test_a_long_title_is_cut_to_what_servers_take():
    asked = response_format({"title": "My reply " * 20, "type": "string"}, "json_schema")["json_schema"]
    assert asked["name"] == ("My_reply_" * 20)[:64]


def test_properties_named_like_notes_stay():
    schema = {"type": "object", "properties": {"title": {"type": "string", "title": "A title"}}, "required": []}
    asked = response_format(schema, "json_schema")["json_schema"]["schema"]
    assert asked["properties"] == {"title": {"type": "string"}}


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


def test_headers_are_added_plain_and_from_the_environment(monkeypatch):
    monkeypatch.setenv("GATEWAY_TOKEN", "t-123")
    _, headers, _ = sent(extra_headers={"X-Team": "ace"}, headers_from_env={"api-key": "GATEWAY_TOKEN"})
    assert (headers["x-team"], headers["api-key"]) == ("ace", "t-123")


def test_many_threads_share_one_client():
    with serving() as server:
        backbone = client(server.url, connections=64)
        with ThreadPoolExecutor(64) as pool:
            sessions = [str(number) for number in range(256)]
            texts = list(pool.map(lambda s: backbone.complete(PROMPT, role="g", session=s).text, sessions))
        assert texts == ["fine"] * 256
        assert len(server.asked()) == 256
