"""What counts as a secret in settings and messages, and what does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError, Stopped
from ace_bench.core.redaction import redact, redact_argument
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments, refuse_secrets
from tests.expected import check_outcomes

PLANTED = "planted-0123456789abcdef"

BY_NAME = [
    *({"backbone": {name: PLANTED}} for name in ("api_key", "apiKey")),
    {"backbone": {"extra_body": {"api-key": PLANTED}}},
    {"backbone": {"extra_body": {"auth": {"password": PLANTED}}}},
    {"backbone": {"extra_body": {"providers": [{"access_token": PLANTED}]}}},
    *(
        {"backbone": {"extra_headers": {name: PLANTED}}}
        for name in ("Authorization", "Proxy-Authorization", "X-API-Key", "Ocp-Apim-Subscription-Key", "Cookie")
    ),
    {"backbone": {"server": {"env": {"HF_TOKEN": PLANTED}}}},
    *({"backbone": {"server": {"flags": flags}}} for flags in (["--api-key", PLANTED], [f"--api-key={PLANTED}"])),
    {"roles": {"judge": {"token": PLANTED}}},
]
BY_VALUE = [
    *(
        {"backbone": {"base_url": url}}
        for url in (
            f"http://user:{PLANTED}@host/v1",
            f"http://user:{PLANTED}/odd@host/v1",
            f"https://{PLANTED}@host/v1",
            f"https://host/v1?api_key={PLANTED}",
            f"https://host/v1?version=1&key={PLANTED}",
            f"https://host?sig={PLANTED}",
        )
    ),
    {"task": {"data_dir": f"s3://id:{PLANTED}@bucket"}},
    {"backbone": {"extra_headers": {"X-Team": f"Bearer {PLANTED}"}}},
    {"backbone": {"extra_body": {"note": "sk-proj-0123456789abcdefghij"}}},
    {"tracker": {"project": f"x-{PLANTED}"}},  # the value of an environment variable
]

HARMLESS = [
    {"backbone": {"api_key_env": "OPENAI_API_KEY", "headers_from_env": {"Authorization": "GATEWAY_TOKEN"}}},
    {"backbone": {"sampling": {"max_tokens": 5, "max_tokens_field": "max_tokens"}, "cache": {"salt": "new"}}},
    {"backbone": {"extra_body": {"stop_token_ids": [1], "eos_token": "</s>", "token_budget": 7}}},
    {"backbone": {"base_url": "http://localhost:8000/v1", "model": "org/sk-model", "api_key": None}},
    {"backbone": {"extra_headers": {"X-Team": "ace", "HTTP-Referer": "https://example.org/?page=1"}}},
    {"task": {"data_dir": "hf://datasets/org/name@main"}},
    {"name": "key_study", "task": {"data_dir": "~/tokens/password"}},
]


@pytest.fixture(autouse=True)
def _planted(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", PLANTED)
    monkeypatch.setenv("OTHER_API_KEY", "none")
    monkeypatch.setenv("SHORT_SECRET", "twelveletter")
    monkeypatch.setenv("SHORTER_SECRET", "11letters-x")
    monkeypatch.setenv("LONGER_PASSWORD", f"{PLANTED}twice")
    monkeypatch.setenv("PATH_OF_KEY", "/path/of/a/key")


@pytest.mark.parametrize("settings", [*BY_NAME, *BY_VALUE], ids=str)
def test_a_setting_with_a_secret_is_refused_by_name(settings, monkeypatch):
    if "tracker" not in settings:
        for name in ("SOME_SERVICE_API_KEY", "LONGER_PASSWORD"):
            monkeypatch.delenv(name)
    said = r"^(backbone|roles|task|tracker)\..* put it into an environment variable"
    with pytest.raises(ConfigError, match=said) as no:
        refuse_secrets(settings)
    assert not re.search(r"0123456789|\n", str(no.value))
    (header,) = settings.get("backbone", {}).get("extra_headers", ["HEADER"])
    assert str(no.value).endswith(f" or +backbone.headers_from_env.{header}=VARIABLE")


def test_other_settings_pass_and_so_do_all_options_that_come_with_the_program():
    paths = (path for folder in config_folders() for path in folder.rglob("*.yaml"))
    for settings in (*HARMLESS, *(OmegaConf.to_container(OmegaConf.load(path)) for path in paths)):
        refuse_secrets(settings)


@pytest.mark.parametrize(
    "argument",
    [
        f"backbone.base_url=http://u:{PLANTED}@host/v1",
        f"+backbone.extra_body.api_key={PLANTED}",
        f"++backbone.extra_body={{auth: {{password: {PLANTED}}}}}",
        f"backbone.extra_headers={{X-API-Key: {PLANTED}}}",
        f"backbone.server.flags=[--api-key,{PLANTED}]",
        f"backbone.base_url=http://a/v1,http://u:{PLANTED}@host/v1",
        f"tracker.wandb.project={PLANTED}",
    ],
)
def test_arguments_are_refused_before_anything_reads_them(argument):
    with pytest.raises(ConfigError, match="environment variable") as no:
        refuse_secret_arguments(["task=finer", argument])
    assert PLANTED not in str(no.value)


def test_ordinary_arguments_pass():
    refuse_secret_arguments(
        ["task=finer", "limit={train: 1, test: 2}", "seed=0,1", "--multirun", "backbone.api_key_env=MY_KEY", "a=[", "x"]
    )


SAID = (
    f"no answer from http://u:{PLANTED}@host/v1",
    f"GET /v1?api_key={PLANTED}&page=2",
    f"header {PLANTED} is wrong",
    "Incorrect API key provided: sk-ab***yz.",
    "GET ?page=2&sig=a&b",
    "short: twelveletter, 11letters-x",
    f"{PLANTED}twice",  # two secrets begin alike: the longer one goes first
    "none of these",
    "mail a@b.org, see https://example.org/a?page=3",
)
WORDS = (
    "task=finer",
    "backbone.api_key=abc",
    "backbone.base_url=https://me:pass@host/v1",
    "method.initial=/home/jane/playbook.json",
    "results=/home/janet/runs",
    "budget.usd=3",
    "backbone.api_key=",
    "--api-key",
)


def test_messages_and_recorded_commands_hold_no_secret_and_no_home_folder(monkeypatch):
    found = [(said, redact(said)) for said in SAID]
    for said, shown in found:
        assert str(ConfigError(said)) == Stopped(said).reason == shown, "wherever errors go"
    for home in ("/home/jane", "/", "/h"):
        monkeypatch.setenv("HOME", home)
        found += [(f"{word}, at home in {home}", redact_argument(word)) for word in (*WORDS, "/h/x")]
    check_outcomes(found, Path(__file__).parent / "expected" / "redacted.txt")
