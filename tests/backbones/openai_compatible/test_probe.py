"""The tiny call before a run: what it finds out, and what it refuses."""

import socket

import pytest

from ace_bench.core.backbones import Backbone, Priced, Probing
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_bench.core.lifecycle import Lifecycle
from ace_bench.store.prices import PriceCard
from tests.backbones.openai_compatible.scripted import DROP, PROMPT, Reply, answer, client, error, serving

pytestmark = pytest.mark.usefixtures("each_client")

READY = answer('{"ready": true}')


def probed(*replies, **settings):
    with serving(*replies) as server:
        return client(server.url, **settings).probe(), server


def refused(*replies, **settings) -> str:
    with serving(*replies, models=["tiny-chat", "large"]) as server, pytest.raises(ConfigError) as caught:
        client(server.url, **settings).probe()
    return str(caught.value)


def test_it_is_what_the_runner_asks_for():
    backbone = client("http://127.0.0.1:9/v1")
    assert isinstance(backbone, Probing)
    assert isinstance(backbone, Lifecycle)
    assert isinstance(backbone, Priced)
    as_backbone: Backbone = backbone
    assert as_backbone.count("four") == 1


def test_facts_about_a_good_endpoint():
    probe, server = probed(READY, prices=PriceCard(input=1, cached_input=0.1, output=2))
    assert len(server.seen) == 1
    assert server.asked()[0]["response_format"]["type"] == "json_schema"
    assert probe.usage.prompt == 100
    assert probe.usage.usd is not None
    facts = dict(probe.facts)
    assert float(facts.pop("latency").removesuffix(" s")) >= 0
    assert facts == {
        "endpoint": server.url,
        "key": "none",
        "model": "tiny-1",
        "structured replies": "json_schema, followed",
        "tokens": "reported",
        "cached tokens": "reported",
        "prices": "known",
    }


def test_what_is_not_reported_is_said():
    facts = probed(answer("hello", usage=None))[0].facts
    assert "did not follow" in facts["structured replies"]
    assert facts["tokens"].startswith("not reported")
    assert facts["cached tokens"].startswith("not reported")
    assert facts["prices"].startswith("unknown")


def test_retries_are_said_and_a_simulation_must_be_owned_up_to():
    simulated = Reply(body={**READY.body, "simulated": True})
    facts = probed(DROP, simulated, simulated=True)[0].facts
    assert facts["retries"] == "1"
    assert facts["simulated"] == "yes"
    with pytest.raises(ConfigError, match="simulated=true, which marks the run as simulated"):
        probed(simulated)


def test_a_cut_or_empty_reply_is_for_the_experiment_to_find_out():
    assert probed(answer('{"rea', ended="length"))[0].facts["model"] == "tiny-1"
    assert probed(answer(""))[0].facts["model"] == "tiny-1"


def test_each_refusal_names_its_mend(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-value-1")
    assert "MY_KEY" in refused(error(401, "bad key"), api_key_env="MY_KEY")
    assert "tiny-chat" in refused(error(404, "The model `tiny` does not exist."))
    said = refused(error(400, "response_format of type json_schema is not supported by this model"))
    assert "structured=auto or none" in said
    assert "quota" in refused(error(429, "You exceeded your current quota", code="insufficient_quota"))


@pytest.mark.parametrize("reply", [error(500, "oops"), error(429, "slow down"), DROP])
def test_a_server_that_fails_is_one_to_come_back_to(reply):
    with pytest.raises(BackboneUnavailable, match="the backbone does not answer"):
        probed(reply)


def test_where_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/v1"
    with pytest.raises(ConfigError, match="cannot be reached"):
        client(url).probe()


def test_structured_none_sends_no_schema():
    probe, server = probed(READY, structured="none")
    assert "response_format" not in server.asked()[0]
    assert probe.facts["structured replies"] == "by the prompt alone"


LLAMA = error(
    500,
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
    "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
)


def spoken(*replies, **settings):
    """Return what a client with ``structured=auto`` sends after its probe, with its identity."""
    with serving(*replies, READY) as server:
        backbone = client(server.url, structured="auto", **settings)
        backbone.probe()
        tried = len(server.asked())
        backbone.complete(PROMPT, role="generator", session="s", schema=SCHEMA)
        return server.asked()[-1], backbone.identity, tried


SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "ids": {"type": "array", "items": {"type": "string"}}},
    "required": ["why"],
}


def test_auto_takes_bounded_schemas_where_the_server_does():
    sent, identity, tried = spoken()
    properties = sent["response_format"]["json_schema"]["schema"]["properties"]
    assert properties["why"]["maxLength"] == 3 * sent["max_tokens"]
    assert properties["ids"]["maxItems"] == 50
    assert (identity["structured"], identity["bounded"], tried) == ("json_schema", True, 1)


def test_a_refused_form_is_not_an_outage_and_the_next_one_is_tried():
    sent, identity, tried = spoken(LLAMA, LLAMA)
    assert sent["response_format"]["type"] == "json_object"
    assert "why" in sent["response_format"]["schema"]["properties"]
    assert (identity["structured"], tried) == ("json_object_schema", 3)
    sent, identity, tried = spoken(*[error(400, "response_format is not supported")] * 4)
    assert "response_format" not in sent
    assert (identity["structured"], tried) == ("none", 5)


def test_bounds_can_be_switched_off():
    sent, identity, _ = spoken(bound_replies=False)
    assert "maxLength" not in str(sent["response_format"])
    assert "bounded" not in identity


def test_without_a_system_role_its_words_open_the_users_message():
    sent, identity, _ = spoken(error(400, "System role not supported"))
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert sent["messages"][0]["content"] == "Be brief.\n\nReply with JSON."
    assert identity["system_role"] is False


def test_a_continued_run_speaks_as_it_began():
    with serving(READY) as server:
        backbone = client(server.url, structured="auto")
        backbone.adopt({"structured": "json_object", "model": "tiny"})
        backbone.probe()
        assert server.asked()[0]["response_format"] == {"type": "json_object"}
        assert len(server.seen) == 1
