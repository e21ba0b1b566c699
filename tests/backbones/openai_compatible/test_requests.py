"""What goes over the wire: sampling, structured output, hints to caches, headers."""

from concurrent.futures import ThreadPoolExecutor

from ace_bench.backbones.openai_compatible.settings import CacheHints, Sampling
from tests.backbones.openai_compatible.scripted import PROMPT, client, complete, serving
from tests.outcomes import as_texts

SCHEMA = {"title": "Reply", "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def sent(**settings):
    schema = settings.pop("schema", None)
    with serving() as server:
        complete(server.url, schema=schema, **settings)
        (request,) = server.seen
    return request


def test_a_plain_call_sends_the_model_the_messages_and_the_sampling():
    path, headers, body = sent(sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=100, seed=7))
    assert path == "/v1/chat/completions"
    messages = [{"role": message.role, "content": message.content} for message in PROMPT]
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "seed": 7}
    assert body == {"model": "tiny", "messages": messages, **sampling}
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == "Bearer none"


def sampling_of(role, usual=0.0, **settings):
    """Sampling with settings of a role; every request is the generator's."""
    return {"sampling": Sampling(temperature=usual, max_tokens=100, roles={role: settings})}


OTHER_NAME = Sampling(temperature=None, max_tokens=50, max_tokens_field="max_completion_tokens")
ASKED = {
    "nulls and another name": {"sampling": OTHER_NAME, "extra_body": {"reasoning_effort": "none"}},
    "a role's own sampling": sampling_of("generator", temperature=1.0, max_tokens=900),
    "a role's own limit": sampling_of("generator", max_tokens=900),
    "a model without temperature": sampling_of("generator", None, temperature=1.0),
    "sampling of another role": sampling_of("curator", temperature=1.0, max_tokens=900),
    "no structured output": {"structured": "none", "schema": SCHEMA},
    "a JSON object": {"structured": "json_object", "schema": SCHEMA},
    "a schema": {"schema": SCHEMA},
    "a salt": {"cache": CacheHints(salt="pepper")},
}


def test_what_is_sent_beside_the_messages(snapshot):
    bodies = {name: sent(**settings)[2] for name, settings in ASKED.items()}
    found = [(name, {key: body[key] for key in sorted(body.keys() - {"messages"})}) for name, body in bodies.items()]
    assert as_texts(found) == snapshot


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


def test_a_new_salt_is_one_per_client():
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
        backbone = client(server.url)
        with ThreadPoolExecutor(64) as pool:
            sessions = [str(number) for number in range(256)]
            texts = list(pool.map(lambda s: backbone.complete(PROMPT, role="g", session=s).text, sessions))
        assert texts == ["fine"] * 256
        assert len(server.asked()) == 256
