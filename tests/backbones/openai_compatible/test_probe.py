"""The tiny call before a run: what it finds out, and what it refuses."""

import re

import pytest

from ace_bench.backbones.openai_compatible.probing import PROMPT as TRIAL
from ace_bench.backbones.openai_compatible.schemas import Bounds
from ace_bench.backbones.openai_compatible.settings import PriceCard, Retry, Sampling
from ace_bench.core.errors import ConfigError
from tests.backbones.openai_compatible.scripted import DROP, PROMPT, Reply, answer, client, error, serving
from tests.outcomes import as_texts, outcome

PROMPT_OF_TRIAL = TRIAL[0].content
CLOCKED = re.compile(r"(?<='latency')(: '[^']*')|(?<='speed')(: '[0-9][^']*')")
READY = answer('{"ready": true}')


def probed(*replies, **settings):
    with serving(*replies) as server:
        return client(server.url, **settings).probe(), server


SIMULATED = Reply(body={**READY.body, "simulated": True})
ENDPOINTS = {
    "good": ([READY], {"prices": PriceCard(input=1, cached_input=0.1, output=2)}),
    "reports nothing, after a retry": ([DROP, answer("hello", usage=None)], {}),
    "simulated": ([SIMULATED], {"simulated": True}),
    "simulated, which nothing says": ([SIMULATED], {}),
    "a reply that is cut": ([answer('{"rea', ended="length")], {}),
    "an empty reply": ([answer("")], {}),
    "a wrong key": ([error(401, "bad key")], {"api_key_env": "MY_KEY"}),
    "another model": ([error(404, "The model `tiny` does not exist.")], {}),
    "no schemas": ([error(400, "response_format of type json_schema is not supported by this model")], {}),
    "no quota": ([error(429, "You exceeded your current quota", code="insufficient_quota")], {}),
    "failing": ([error(500, "oops")], {}),
    "busy": ([error(429, "slow down")], {}),
}


def test_what_a_probe_finds_out_or_refuses(snapshot, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-value-1")
    found = []
    for name, (replies, settings) in ENDPOINTS.items():
        with serving(*replies, models=["tiny-chat", "large"]) as server:
            probe = outcome(client(server.url, **settings).probe)
        facts = str(getattr(probe, "facts", probe)).replace(server.url, "URL")
        found.append((name, f"{CLOCKED.sub('', facts)} {getattr(probe, 'usage', '')}"))
    assert as_texts(found) == snapshot


LLAMA = error(
    500,
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
    "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
)


SCHEMA = {
    "type": "object",
    "properties": {
        "why": {"type": "string"},
        "ids": {"type": "array", "items": {"type": "string"}},
        "any": {"type": "array"},
    },
    "required": ["why"],
}
FORMS = {
    "a server that takes all": ([], {}),
    "one that knows json_object alone": ([LLAMA], {}),
    "one that knows no form": ([error(400, "response_format is not supported")] * 3, {}),
    "with bounds of one's own": ([], {"bound_replies": Bounds(max_string=7, max_items=2)}),
    "without a system role": ([error(400, "System role not supported")], {}),
}


def test_structured_auto_takes_the_best_form_that_the_server_takes(snapshot):
    found = []
    for name, (replies, settings) in FORMS.items():
        with serving(*replies, READY) as server:
            backbone = client(server.url, structured="auto", **settings)
            form = backbone.probe().facts["structured replies"]
            tried = len([body for body in server.asked() if body["messages"][0]["content"] != PROMPT_OF_TRIAL])
            backbone.complete(PROMPT, role="generator", session="s", schema=SCHEMA)
            sent = server.asked()[-1]
        identity = {key: backbone.identity.get(key) for key in ("structured", "bound_replies", "system_role")}
        said = [sent["messages"], sent.get("response_format")]
        found.append((name, "\n    ".join(map(str, [f"{form} (tried {tried})", identity, *said]))))
    assert as_texts(found) == snapshot


TOWN = answer("Bern is a small town with a river.")
SEEDS = {
    "followed": (TOWN, TOWN),
    "ignored": (TOWN, answer("Ulm is a town on a river.")),
    "refused": (error(400, "seed is not supported"), TOWN),
    "n/a": (answer(""), TOWN),
}


@pytest.mark.parametrize("found", SEEDS)
def test_two_short_calls_show_whether_the_seed_is_followed(found):
    with serving(READY, *SEEDS[found]) as server:
        facts = client(server.url, retry=Retry(times=0)).probe().facts
        assert {(body["temperature"], body["max_tokens"]) for body in server.asked()[1:]} == {(1.0, 16)}
    assert facts["seed"] == found


LENGTHS = {
    "vLLM and SGLang": ({"max_model_len": 9000}, {}, 9000),
    "Together": ({"context_length": 9000}, {}, 9000),
    "OpenRouter, whose provider serves less": (
        {"context_length": 131072, "top_provider": {"context_length": 9000}},
        {},
        9000,
    ),
    "OpenRouter, whose provider says nothing": (
        {"context_length": 9000, "top_provider": {"context_length": None}},
        {},
        9000,
    ),
    "Groq": ({"context_window": 9000, "max_model_len": None}, {}, 9000),
    "Mistral": ({"max_context_length": 9000}, {}, 9000),
    "llama.cpp": ({"meta": {"n_ctx": 9000, "n_ctx_train": 131072}}, {}, 9000),
    "llama.cpp, which lists only what the model was trained with": (
        {"meta": {"n_ctx_train": 131072}},
        {"/props": {"default_generation_settings": {"n_ctx": 9000}, "total_slots": 4}},
        9000,
    ),
    "a model that says only what it was trained with": ({"meta": {"n_ctx_train": 131072}}, {}, None),
    "Ollama": ({}, {"/api/ps": {"models": [{"name": "tiny:latest", "context_length": 9000}]}}, 9000),
    "Ollama with another model loaded": ({}, {"/api/ps": {"models": [{"name": "big:70b", "context_length": 7}]}}, None),
    "TGI": ({}, {"/info": {"model_id": "a/tiny", "max_input_tokens": 8000, "max_total_tokens": 9000}}, 9000),
    "LM Studio": (
        {},
        {"/api/v0/models": {"data": [{"id": "tiny", "loaded_context_length": 9000, "max_context_length": 131072}]}},
        9000,
    ),
    "LM Studio before it has loaded the model": (
        {},
        {"/api/v0/models": {"data": [{"id": "tiny", "state": "not-loaded", "max_context_length": 131072}]}},
        None,
    ),
    "odd types": ({"max_model_len": "9000", "meta": [], "top_provider": 5}, {"/props": [1], "/info": {}}, None),
}


def test_the_context_length_is_the_one_that_the_server_serves():
    for name, (listed, beside, expected) in LENGTHS.items():
        with serving(READY, models=["other", {"id": "tiny", **listed}], beside=beside) as server:
            backbone, configured = client(server.url), client(server.url, context_length=20_000)
            fact = backbone.probe().facts["context length"]
            configured.probe()
        assert (backbone.context_length, configured.context_length) == (expected, 20_000), name
        assert fact == ("n/a" if expected is None else "9,000 tokens"), name


def test_a_server_of_one_model_serves_it_under_any_name():
    with serving(READY, models=[{"id": "/models/tiny.gguf", "meta": {"n_ctx": 9000}}]) as server:
        backbone = client(server.url)
        backbone.read_context_length()
    assert backbone.context_length == 9000


def test_a_reply_limit_that_fills_the_context_is_refused_before_the_run():
    with serving(READY, models=[{"id": "tiny", "max_model_len": 4096}]) as server:
        with pytest.raises(ConfigError, match="max_tokens=4096 leaves no room for a prompt in a context of 4096"):
            client(server.url).probe()
        roles = {"curator": {"max_tokens": 5000}}
        with pytest.raises(ConfigError, match=r"lower sampling\.curator\.max_tokens"):
            client(server.url, sampling=Sampling(max_tokens=100, roles=roles)).probe()


PARSED = answer(None, reasoning_content='{"ready": true, "note": "ok"}')
THINKING = answer("", reasoning_content="Let me see. The user wants", ended="length")


@pytest.mark.parametrize("settings", [{}, {"sampling": Sampling(max_tokens=16)}, {"retry": Retry(empty=False)}])
@pytest.mark.parametrize("reply", [PARSED, answer([{"type": "thinking", "thinking": "{}"}])])
def test_a_server_that_reports_replies_as_reasoning_is_refused_before_the_run(reply, settings):
    with serving(reply) as server:
        with pytest.raises(ConfigError, match=r"replies have no text.*without --reasoning-parser, or let the model th"):
            client(server.url, **settings).probe()
        assert len(server.asked()) <= 4


def test_a_model_that_thinks_to_its_limit_is_not_refused_but_named():
    few = {"sampling": Sampling(max_tokens=16)}
    with serving(THINKING, READY, TOWN) as server:
        (warning,) = client(server.url, **few).probe().warnings
        assert [body["max_tokens"] for body in server.asked()][:2] == [16, 2048]
    assert "raise backbone.sampling.max_tokens=16" in warning
    with serving(THINKING, error(400, "max_tokens is too large"), TOWN) as server:
        assert client(server.url, **few).probe().warnings == (warning,)
    with serving(THINKING) as server:
        assert "max_tokens=4096" in client(server.url).probe().warnings[0]
        assert len([body for body in server.asked() if body["max_tokens"] > 16]) == 1


def test_a_model_that_thought_and_forgot_to_reply_once_is_fine():
    with serving(answer("", reasoning_content="Hm."), answer("", reasoning_content="Hm."), READY, TOWN) as server:
        assert not client(server.url).probe().warnings


def test_another_model_than_the_one_asked_for_is_named_by_the_probe():
    def warnings(answered, **settings):
        with serving(Reply(body={**READY.body, "model": answered})) as server:
            return client(server.url, **settings).probe().warnings

    assert warnings("another-model-7b") == (
        "Asked for tiny, another-model-7b answers: set backbone.model=another-model-7b if that is meant, or correct "
        "the server.",
    )
    for same in ("tiny", "", None, "hub/Tiny", "/models/tiny-Q4_K_M.gguf", "tiny-2024-07-18"):
        assert not warnings(same), same


def test_a_continued_run_shares_no_probe_with_runs_that_send_another_form():
    with serving(READY) as server:
        new, alike, other = (client(server.url, structured="auto") for _ in range(3))
        key = new.probe_key
        alike.adopt({"structured": "json_object"})
        other.adopt({"structured": "json_object"})
        assert alike.probe_key == other.probe_key != key
        new.probe()
        assert new.probe_key == key
