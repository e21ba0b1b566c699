"""What counts as a secret in settings and messages, and what does not."""

import json

import pytest
from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError, Stopped
from ace_bench.core.redaction import redact, redact_argument
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments, refuse_secrets
from tests.outcomes import outcomes

PLANTED = "planted-0123456789abcdef"


@pytest.fixture(autouse=True)
def _planted(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", PLANTED)
    monkeypatch.setenv("OTHER_API_KEY", "none")
    monkeypatch.setenv("SHORT_SECRET", "twelveletter")
    monkeypatch.setenv("SHORTER_SECRET", "11letters-x")
    monkeypatch.setenv("LONGER_PASSWORD", f"{PLANTED}twice")
    monkeypatch.setenv("PATH_OF_KEY", "/path/of/a/key")


SECRET_ARGUMENTS = [
    "backbone.base_url=http://u:planted-0123456789abcdef@host/v1",
    "+backbone.extra_body.api_key=planted-0123456789abcdef",
    "++backbone.extra_body={auth: {password: planted-0123456789abcdef}}",
    "backbone.extra_headers={X-API-Key: planted-0123456789abcdef}",
    "backbone.server.flags=[--api-key,planted-0123456789abcdef]",
    "backbone.base_url=http://a/v1,http://u:planted-0123456789abcdef@host/v1",
    "task=finer",
    "limit={train: 1, test: 2}",
    "seed=0,1",
    "--multirun",
    "backbone.api_key_env=MY_KEY",
    "a=[",
    "x",
    "+backbone.headers_from_env.X-Api-Key=VARIABLE",
    "+backbone.headers_from_env.X-Api-Key=sk-0123456789abcdefghij",
    "+roles.reflector.extra_headers.X-Api-Key=value",
]


SECRET_SETTINGS = [
    '{"backbone": {"api_key": "planted-0123456789abcdef"}}',
    '{"backbone": {"apiKey": "planted-0123456789abcdef"}}',
    '{"backbone": {"extra_body": {"api-key": "planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_body": {"auth": {"password": "planted-0123456789abcdef"}}}}',
    '{"backbone": {"extra_body": {"providers": [{"access_token": "planted-0123456789abcdef"}]}}}',
    '{"backbone": {"extra_headers": {"Authorization": "planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_headers": {"Proxy-Authorization": "planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_headers": {"X-API-Key": "planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_headers": {"Ocp-Apim-Subscription-Key": "planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_headers": {"Cookie": "planted-0123456789abcdef"}}}',
    '{"backbone": {"server": {"env": {"HF_TOKEN": "planted-0123456789abcdef"}}}}',
    '{"backbone": {"server": {"flags": ["--api-key", "planted-0123456789abcdef"]}}}',
    '{"backbone": {"server": {"flags": ["--api-key=planted-0123456789abcdef"]}}}',
    '{"roles": {"judge": {"token": "planted-0123456789abcdef"}}}',
    '{"backbone": {"base_url": "http://user:planted-0123456789abcdef@host/v1"}}',
    '{"backbone": {"base_url": "http://user:planted-0123456789abcdef/odd@host/v1"}}',
    '{"backbone": {"base_url": "https://planted-0123456789abcdef@host/v1"}}',
    '{"backbone": {"base_url": "https://host/v1?api_key=planted-0123456789abcdef"}}',
    '{"backbone": {"base_url": "https://host/v1?version=1&key=planted-0123456789abcdef"}}',
    '{"backbone": {"base_url": "https://host?sig=planted-0123456789abcdef"}}',
    '{"task": {"data_dir": "s3://id:planted-0123456789abcdef@bucket"}}',
    '{"backbone": {"extra_headers": {"X-Team": "Bearer planted-0123456789abcdef"}}}',
    '{"backbone": {"extra_body": {"note": "sk-proj-0123456789abcdefghij"}}}',
    '{"backbone": {"api_key_env": "OPENAI_API_KEY", "headers_from_env": {"Authorization": "GATEWAY_TOKEN"}}}',
    '{"backbone": {"sampling": {"max_tokens": 5, "max_tokens_field": "max_tokens"}, "cache": {"salt": "new"}}}',
    '{"backbone": {"extra_body": {"stop_token_ids": [1], "eos_token": "</s>", "token_budget": 7}}}',
    '{"backbone": {"base_url": "http://localhost:8000/v1", "model": "org/sk-model", "api_key": null}}',
    '{"backbone": {"extra_headers": {"X-Team": "ace", "HTTP-Referer": "https://example.org/?page=1"}}}',
    '{"task": {"data_dir": "hf://datasets/org/name@main"}}',
    '{"name": "key_study", "task": {"data_dir": "~/tokens/password"}}',
]


def test_settings_and_arguments_with_a_secret_are_refused_by_name_and_others_pass(snapshot, monkeypatch):
    project = {"tracker": {"project": f"x-{PLANTED}"}}
    with pytest.raises(ConfigError, match=r"^tracker\.project .* put it into an environment variable"):
        refuse_secrets(project)  # the value of an environment variable
    with pytest.raises(ConfigError, match="put it into an environment variable"):
        refuse_secret_arguments(["task=finer", f"tracker.wandb.project={PLANTED}"])
    for name in ("SOME_SERVICE_API_KEY", "LONGER_PASSWORD"):
        monkeypatch.delenv(name)
    assert outcomes(lambda case: refuse_secrets(json.loads(case)), SECRET_SETTINGS) == snapshot
    assert outcomes(lambda case: refuse_secret_arguments(["task=finer", case]), SECRET_ARGUMENTS) == snapshot


def test_all_options_that_come_with_the_program_pass():
    for path in (path for folder in config_folders() for path in folder.rglob("*.yaml")):
        refuse_secrets(OmegaConf.to_container(OmegaConf.load(path)))


REDACTED_WORDS = [
    "task=finer",
    "backbone.api_key=abc",
    "backbone.base_url=https://me:pass@host/v1",
    "method.initial=/home/jane/playbook.json",
    "results=/home/janet/runs",
    "budget.usd=3",
    "backbone.api_key=",
    "--api-key",
    "/h/x",
]


REDACTED = [
    "no answer from http://u:planted-0123456789abcdef@host/v1",
    "GET /v1?api_key=planted-0123456789abcdef&page=2",
    "header planted-0123456789abcdef is wrong",
    "Incorrect API key provided: sk-ab***yz.",
    "GET ?page=2&sig=a&b",
    "short: twelveletter, 11letters-x",
    "planted-0123456789abcdeftwice",
    "none of these",
    "mail a@b.org, see https://example.org/a?page=3",
]


def test_messages_and_recorded_commands_hold_no_secret_and_no_home_folder(snapshot, monkeypatch):
    def redact_everywhere(said):
        assert str(ConfigError(said)) == Stopped(said).reason == redact(said), "wherever errors go"
        return redact(said)

    def redact_at(word):
        shown = []
        for home in ("/home/jane", "/", "/h"):
            monkeypatch.setenv("HOME", home)
            shown.append(redact_argument(word))
        return ", ".join(shown)

    assert outcomes(redact_everywhere, REDACTED) == snapshot
    assert outcomes(redact_at, REDACTED_WORDS) == snapshot
