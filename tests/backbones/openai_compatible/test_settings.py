"""Settings: mistakes are refused before anything is sent; identity; the presets in configs/."""

import json

import pytest

from ace_bench.backbones.openai_compatible.azure import Azure
from ace_bench.backbones.openai_compatible.settings import Sampling
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Usage
from tests.backbones.openai_compatible.scripted import client
from tests.launching import built, composed
from tests.outcomes import outcome, outcomes

PRESETS = ("deepseek_v3_1", "gpt_4o_mini", "gpt_5_1", "gpt_oss_120b", "llama_3_3_70b")
URL = "http://127.0.0.1:9/v1"


REFUSED = [
    '{"extra_headers": {"X-API-Key": "sk-1"}}',
    '{"azure": {"deployment": "d"}}',
    '{"azure": {"api_version": "v"}, "api_key_env": "K"}',
    '{"url": "https://name.openai.azure.com", "azure": {"api_version": "v"}}',
    '{"url": "https://name.openai.azure.com", "azure": {"api_version": "v", "entra": true}, "api_key_env": "K"}',
    '{"url": "localhost:8000"}',
    '{"url": "http://"}',
    '{"url": "http://user:pass@host/v1"}',
    '{"url": "http://host/v1?a=1"}',
]


def test_a_client_refuses_settings_that_cannot_work(snapshot):
    def refused(case):
        settings = json.loads(case)
        azure = {"azure": Azure(**settings["azure"])} if "azure" in settings else {}
        return outcome(client, **{"url": URL, **settings, **azure})

    assert outcomes(refused, REFUSED) == snapshot
    with pytest.raises(ConfigError, match="not JSON"):
        client(URL, extra_body={"thing": object()})


def test_seeds_of_one_experiment_share_an_identity_but_sending_none_does_not():
    one, two, none = (client(URL, sampling=Sampling(seed=seed)).identity for seed in (1, 2, None))
    assert one == two != none


def test_the_configuration_follows_the_runs_seed():
    config, _ = composed("backbone=openai_compatible", "backbone.model=m", "seed=3")
    backbone = built(config, "backbone")
    assert backbone.sampling.seed == 3


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_builds_without_a_key_as_backbone_and_as_role(preset, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config, _ = composed(f"backbone={preset}", f"backbone@roles.reflector={preset}")
    for place in ("backbone", "roles.reflector"):
        backbone = built(config, place)
        assert backbone.name
        assert backbone.context_length >= 128_000
        assert not backbone.simulated


def test_openais_prices_give_the_papers_saving():
    config, _ = composed("backbone=gpt_5_1")
    backbone = built(config, "backbone")
    assert backbone.dollars(Usage(prompt=1_000_000, cached=0, completion=0)) == 1.25
    billed = backbone.dollars(Usage(prompt=1_000_000, cached=918_000, completion=0))
    assert round(100 * (1 - billed / 1.25), 1) == 82.6
