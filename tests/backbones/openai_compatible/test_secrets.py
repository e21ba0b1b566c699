"""The key is sent to the server and shown to nobody."""

import logging
import traceback

import pytest

from ace_bench.core.errors import BackboneUnavailable, ConfigError, RolloutFault
from tests.backbones.openai_compatible.scripted import PROMPT, Reply, answer, client, error, serving

KEY = "sk-planted-0123456789abcdef"
TOKEN = 'gateway-"token"-987'


@pytest.fixture(autouse=True)
def _planted(monkeypatch):
    monkeypatch.setenv("PLANTED_KEY", KEY)
    monkeypatch.setenv("PLANTED_TOKEN", TOKEN)


def clean(text: str) -> bool:
    return not any(secret in text for secret in (KEY, TOKEN, TOKEN.replace('"', '\\"'), "0123456789abcdef"))


@pytest.mark.parametrize("status", [400, 401, 500])
def test_an_echoing_server_does_not_get_the_key_into_errors_or_logs(status, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(Reply(status=status, body="ECHO")) as server:
        backbone = client(server.url, api_key_env="PLANTED_KEY", headers_from_env={"X-Gateway": "PLANTED_TOKEN"})
        with pytest.raises((RolloutFault, BackboneUnavailable)) as caught:
            backbone.complete(PROMPT, role="generator", session="s")
        with pytest.raises((ConfigError, BackboneUnavailable)) as probed:
            backbone.probe()
        assert server.seen[0][1]["authorization"] == f"Bearer {KEY}"
        assert server.seen[0][1]["x-gateway"] == TOKEN
    for error_ in (caught.value, probed.value):
        assert "[key]" in str(error_)
        assert clean("".join(traceback.format_exception(error_)))
        assert error_.__context__ is None
    assert clean(caplog.text)
    assert clean(repr(backbone) + repr(backbone.identity) + str(vars(backbone)))


def test_a_model_that_repeats_the_key_does_not_get_it_into_the_records():
    with serving(answer(f"Your key is {KEY}."), answer(None, refusal=f"not with {KEY}")) as server:
        backbone = client(server.url, api_key_env="PLANTED_KEY")
        assert backbone.complete(PROMPT, role="g", session="s").text == "Your key is [key]."
        with pytest.raises(RolloutFault) as caught:
            backbone.complete(PROMPT, role="g", session="s")
    assert clean(str(caught.value))


def test_a_word_in_place_of_a_key_and_a_proxys_password_leave_replies_alone(monkeypatch):
    monkeypatch.setenv("WORD", "EMPTY")
    monkeypatch.setenv("https_proxy", "http://user:count@127.0.0.1:9")
    with serving(answer("SELECT count(*) -- EMPTY"), error(400, "EMPTY is no key, said count")) as server:
        backbone = client(server.url, api_key_env="WORD")
        assert backbone.complete(PROMPT, role="g", session="s").text == "SELECT count(*) -- EMPTY"
        with pytest.raises(RolloutFault, match=r"\[key\] is no key, said \[key\]"):
            backbone.complete(PROMPT, role="g", session="s")


def test_a_missing_key_names_its_variable_and_is_found_before_anything_is_sent(monkeypatch):
    monkeypatch.setenv("EMPTY_KEY", "  ")
    with serving() as server:
        for name in ("NO_SUCH_KEY", "EMPTY_KEY"):
            backbone = client(server.url, api_key_env=name)  # a dry run needs no key
            with pytest.raises(ConfigError, match=f"api_key_env={name}.*or set it to null"):
                backbone.probe()
            with pytest.raises(ConfigError, match=name):
                backbone.start(str)
            with pytest.raises(BackboneUnavailable, match=name):
                backbone.complete(PROMPT, role="g", session="s")
        assert not server.seen
