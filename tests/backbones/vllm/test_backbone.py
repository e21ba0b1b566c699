"""The backbone: either a running server or one of its own, and the client behind both."""

import urllib.error
import urllib.request
from contextlib import closing

import pytest

from ace_bench.backbones.vllm.backbone import Vllm
from ace_bench.backbones.vllm.server import ServerPool
from ace_bench.core.errors import BackboneUnavailable, ConfigError, Interrupted
from ace_bench.core.types import CacheCounters, Message, ServerLoad
from tests.backbones.vllm.conftest import alive
from tests.launching import built, composed

ASKED = (Message(role="user", content="hello"),)
SCHEMA = {"title": "Reply", "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


def quiet(line):
    pass


@pytest.fixture
def make(fake, monkeypatch):
    made = []
    monkeypatch.setenv("FAKE_VLLM_PIDS", str(fake.folder / "pids.json"))

    def configured(*overrides) -> Vllm:
        named = [] if overrides[0].startswith("backbone=") else ["backbone=vllm"]
        config, _ = composed(
            *named,
            f"backbone.server.executable={fake.executable}",
            f"results={fake.folder}",
            "backbone.server.stop_timeout=0.5",
            "backbone.retry.times=1",
            "backbone.retry.first_pause=0.01",
            *overrides,
        )
        made.append(built(config, "backbone"))
        return made[-1]

    yield configured
    for backbone in made:
        backbone.close()


LAUNCH = ("backbone.launch=true", "backbone.model=some/model")


def test_a_launched_server_from_open_to_close(fake, make):
    backbone = make(*LAUNCH, "backbone.server.served_name=short")
    assert backbone.name == "short"
    assert backbone.context_length is None
    assert backbone.cache_counters() is None
    backbone.start(quiet)
    assert backbone.context_length == 16384
    assert backbone.cache_counters() == CacheCounters(queries=10, hits=4)
    completion = backbone.complete(ASKED, role="generator", session="s", schema=SCHEMA)
    assert completion.model == "short"
    assert completion.usage.cached == 4
    facts = backbone.probe().facts
    assert facts["context length"] == "16,384 tokens"
    assert facts["cache counters"] == "reported"
    assert list((fake.folder / "servers").glob("short-*.log"))
    first = fake.pids()
    backbone.start(quiet)
    assert fake.pids() == first, "a second open changes nothing"
    backbone.close()
    backbone.close()
    assert fake.all_gone(within=1)


def test_an_interruption_while_the_server_loads_ends_later_calls(make):
    backbone = make(*LAUNCH)
    backbone.start(lambda _: backbone.interrupt(0.0))
    with pytest.raises(Interrupted):
        backbone.complete(ASKED, role="generator", session="s")


def test_llama_cpp_is_launched_and_serves_no_more_than_the_model_was_trained_for(fake, make):
    name = "backbone.server.served_name=short"
    backbone, lines = make("backbone=llama_cpp", *LAUNCH, name, "backbone.server.max_model_len=50000"), []
    backbone.start(lines.append)
    assert backbone.name == "short"
    assert backbone.complete(ASKED, role="generator", session="s", schema=SCHEMA).text
    assert backbone.probe().facts["context length"] == "16,384 tokens"
    assert lines[-1].startswith("llama.cpp: ready after")
    assert not any("vLLM" in line for line in lines)
    backbone.close()
    assert fake.all_gone(within=1)


@pytest.mark.slow
def test_a_running_server_is_used_and_left_alone(fake, make):
    owner = make(*LAUNCH)
    owner.start(quiet)
    root = owner._root
    for url in (root, f"{root}/", f"{root}/v1", f"{root}/v1/"):
        guest = make(f"backbone.url={url}", "backbone.model=some/model")
        guest.start(quiet)
        assert guest.context_length == 16384
        assert guest.cache_counters() == CacheCounters(queries=10, hits=4)
        assert guest.complete(ASKED, role="generator", session="s").usage.prompt == 10
        guest.close()
    assert owner.cache_counters() is not None


def test_a_server_that_has_ended_stops_the_run_with_its_last_words_and_takes_its_children_along(fake, make):
    backbone = make(*LAUNCH)
    backbone.start(quiet)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"{backbone._root}/crash", timeout=5)
    with pytest.raises(BackboneUnavailable, match="vLLM has ended with status 1") as stopped:
        backbone.complete(ASKED, role="generator", session="s")
    assert "INFO Starting to load model" in stopped.value.reason
    assert backbone.cache_counters() is None
    assert fake.all_gone()
    backbone.start(quiet)
    assert backbone.complete(ASKED, role="generator", session="s").usage.prompt == 10


def test_the_configured_context_length_comes_before_the_servers(make):
    backbone = make(*LAUNCH, "backbone.context_length=8000")
    backbone.start(quiet)
    assert backbone.context_length == 8000
    short = (*LAUNCH, "backbone.server.max_model_len=3000")
    assert make(*short, "backbone.sampling.max_tokens=500").context_length == 3000
    with pytest.raises(ConfigError, match="leaves no room for a prompt in a context of 3000"):
        make(*short)


@pytest.mark.parametrize(
    ("option", "setting"), [("vllm", "url"), ("llama_cpp", "url"), ("openai_compatible", "base_url")]
)
def test_the_message_that_nobody_listens_names_the_setting_of_the_address(option, setting):
    address = f"backbone.{setting}=http://127.0.0.1:9/v1"
    own = ("backbone.model=m", "backbone.retry.times=0", "backbone.api_key_env=null")
    config, _ = composed(f"backbone={option}", address, *own)
    backbone = built(config, "backbone")
    for ask in (backbone.probe, lambda: backbone.complete(ASKED, role="generator", session="s")):
        with pytest.raises((ConfigError, BackboneUnavailable), match=rf"or correct backbone\.{setting}$"):
            ask()


def test_the_load_of_a_server_is_read(make):
    backbone = make(*LAUNCH)
    backbone.start(quiet)
    assert backbone.load() == ServerLoad(running=3, waiting=2)


def test_runs_of_a_process_share_a_server_which_waits_for_the_next_run_until_another_is_wanted(fake, make):
    servers = ServerPool(keeps_idle=True)
    first, second, other = (make(*LAUNCH, f"backbone.server.served_name={name}") for name in ("a", "a", "b"))
    for backbone in (first, second, other):
        backbone.servers = servers
    with closing(servers):
        first.start(quiet)
        shared = fake.pids()
        first.close()
        second.start(quiet)
        first.start(quiet)
        assert fake.pids() == shared
        assert first.server == second.server
        second.close()
        other.start(quiet)
        assert other.server != first.server
        assert first.complete(ASKED, role="generator", session="s").text
        first.close()
        assert alive(shared[0])
        other.close()
    assert not alive(shared[0])
    assert fake.all_gone(within=1)
