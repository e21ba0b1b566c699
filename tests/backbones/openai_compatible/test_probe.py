"""The tiny call before a run: what it finds out, and what it refuses."""

import re
from pathlib import Path

import pytest

from ace_bench.backbones.openai_compatible.probing import PROMPT as TRIAL
from ace_bench.backbones.openai_compatible.schemas import Bounds
from ace_bench.backbones.openai_compatible.settings import PriceCard, Retry, Sampling
from ace_bench.core.errors import ConfigError
from tests.backbones.openai_compatible.scripted import DROP, PROMPT, Reply, answer, client, error, serving
from tests.expected import check_outcomes, outcome

pytestmark = pytest.mark.usefixtures("each_client")

PROMPT_OF_TRIAL = TRIAL[0].content
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


def test_what_a_probe_finds_out_or_refuses(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-value-1")
    found = []
    for name, (replies, settings) in ENDPOINTS.items():
        with serving(*replies, models=["tiny-chat", "large"]) as server:
            probe = outcome(client(server.url, **settings).probe)
        facts = str(getattr(probe, "facts", probe)).replace(server.url, "URL")
        found.append((name, f"{re.sub('latency.: .[0-9.]+ s', 'latency', facts)} {getattr(probe, 'usage', '')}"))
    check_outcomes(found, Path(__file__).parent / "expected" / "probes.txt")


LLAMA = error(
    500,
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
    "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
)


def spoken(*replies, **settings):
    """Return what a client with ``structured=auto`` sends after its probe, its identity and what the probe found."""
    with serving(*replies, READY) as server:
        backbone = client(server.url, structured="auto", **settings)
        form = backbone.probe().facts["structured replies"]
        tried = len([body for body in server.asked() if body["messages"][0]["content"] != PROMPT_OF_TRIAL])
        backbone.complete(PROMPT, role="generator", session="s", schema=SCHEMA)
        return server.asked()[-1], backbone.identity, (tried, form)


SCHEMA = {
    "type": "object",
    "properties": {
        "why": {"type": "string"},
        "ids": {"type": "array", "items": {"type": "string"}},
        "any": {"type": "array"},
    },
    "required": ["why"],
}


def test_auto_takes_bounded_schemas_where_the_server_does():
    sent, identity, tried = spoken()
    properties = sent["response_format"]["json_schema"]["schema"]["properties"]
    assert properties["why"]["maxLength"] == 3 * sent["max_tokens"]
    assert properties["ids"]["maxItems"] == 50
    assert properties["any"] == {"type": "array", "maxItems": 50, "items": {}}
    assert (identity["structured"], identity["bounded"]) == ("json_schema", True)
    assert tried == (1, "json_schema, with bounded strings, followed")


def test_a_refused_form_is_not_an_outage_and_the_next_one_is_tried():
    sent, identity, tried = spoken(LLAMA, LLAMA)
    assert sent["response_format"]["type"] == "json_object"
    assert "why" in sent["response_format"]["schema"]["properties"]
    assert (identity["structured"], tried) == ("json_object_schema", (3, "json_object_schema, followed"))
    sent, identity, tried = spoken(*[error(400, "response_format is not supported")] * 4)
    assert "response_format" not in sent
    assert (identity["structured"], tried) == ("none", (5, "by the prompt alone"))


@pytest.mark.parametrize(
    ("bounds", "why"),
    [(False, {"type": "string"}), (Bounds(max_string=7, max_items=2), {"type": "string", "maxLength": 7})],
)
def test_bounds_can_be_switched_off_or_be_ones_own(bounds, why):
    sent, identity, _ = spoken(bound_replies=bounds)
    properties = sent["response_format"]["json_schema"]["schema"]["properties"]
    assert (properties["why"], "bounded" in identity) == (why, False)
    assert identity.get("bound_replies", {}).get("max_string") == (why.get("maxLength"))


def test_without_a_system_role_its_words_open_the_users_message():
    sent, identity, tried = spoken(error(400, "System role not supported"))
    assert tried == (2, "json_schema, with bounded strings, no system role, followed")
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert sent["messages"][0]["content"] == "Be brief.\n\nReply with JSON."
    assert identity["system_role"] is False


TOWN = answer("Bern is a small town with a river.")


@pytest.mark.parametrize(
    ("first", "second", "seed", "stop"),
    [
        (TOWN, answer("Bern is a small "), "followed", "followed"),
        (TOWN, TOWN, "followed", "ignored"),
        (TOWN, answer("I like Ulm."), "ignored", "followed"),
        (TOWN, answer("Ulm is a town on a river."), "ignored", "ignored"),
        (TOWN, error(400, "stop is not supported"), "n/a", "refused"),
        (error(400, "seed is not supported"), TOWN, "refused", "n/a"),
        (answer(""), TOWN, "n/a", "n/a"),
    ],
)
def test_two_short_calls_show_whether_seed_and_stop_are_followed(first, second, seed, stop):
    with serving(READY, first, second) as server:
        facts = client(server.url, retry=Retry(times=0)).probe().facts
        assert (facts["seed"], facts["stop"]) == (seed, stop)
        sent = server.asked()[1:]
    assert all((body["temperature"], body["max_tokens"]) == (1.0, 16) for body in sent)


@pytest.mark.parametrize(
    "listed",
    [
        {"max_model_len": 9000},
        {"context_length": 9000},
        {"context_window": 9000, "max_model_len": None},
        {"meta": {"n_ctx_train": 9000}},
        {"meta": {"n_ctx": 9000, "n_ctx_train": 131072}},
    ],
)
def test_the_context_length_is_read_from_the_list_of_models(listed):
    with serving(READY, models=["other", {"id": "tiny", **listed}]) as server:
        backbone = client(server.url)
        assert backbone.probe().facts["context length"] == "9,000 tokens"
        assert backbone.context_length == 9000
        configured = client(server.url, context_length=20_000)
        configured.probe()
        assert configured.context_length == 20_000


def test_a_reply_limit_that_fills_the_context_is_refused_before_the_run():
    with serving(READY, models=[{"id": "tiny", "max_model_len": 4096}]) as server:
        with pytest.raises(ConfigError, match="max_tokens=4096 leaves no room for a prompt in a context of 4096"):
            client(server.url).probe()
        roles = {"curator": {"max_tokens": 5000}}
        with pytest.raises(ConfigError, match=r"lower sampling\.curator\.max_tokens"):
            client(server.url, sampling=Sampling(max_tokens=100, roles=roles)).probe()
