"""What counts as a secret in settings and messages, and what does not."""

import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError, Stopped
from ace_bench.core.redaction import redact, redact_argument
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments, refuse_secrets
from tests.expected import check_cases, outcome

PLANTED = "planted-0123456789abcdef"
EXPECTED = Path(__file__).parent / "expected"


@pytest.fixture(autouse=True)
def _planted(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", PLANTED)
    monkeypatch.setenv("OTHER_API_KEY", "none")
    monkeypatch.setenv("SHORT_SECRET", "twelveletter")
    monkeypatch.setenv("SHORTER_SECRET", "11letters-x")
    monkeypatch.setenv("LONGER_PASSWORD", f"{PLANTED}twice")
    monkeypatch.setenv("PATH_OF_KEY", "/path/of/a/key")


def test_settings_and_arguments_with_a_secret_are_refused_by_name_and_others_pass(monkeypatch):
    project = {"tracker": {"project": f"x-{PLANTED}"}}
    with pytest.raises(ConfigError, match=r"^tracker\.project .* put it into an environment variable"):
        refuse_secrets(project)  # the value of an environment variable
    with pytest.raises(ConfigError, match="put it into an environment variable"):
        refuse_secret_arguments(["task=finer", f"tracker.wandb.project={PLANTED}"])
    for name in ("SOME_SERVICE_API_KEY", "LONGER_PASSWORD"):
        monkeypatch.delenv(name)
    check_cases(lambda case: outcome(refuse_secrets, json.loads(case)), EXPECTED / "secret_settings.txt")
    check_cases(lambda case: outcome(refuse_secret_arguments, ["task=finer", case]), EXPECTED / "secret_arguments.txt")


def test_all_options_that_come_with_the_program_pass():
    for path in (path for folder in config_folders() for path in folder.rglob("*.yaml")):
        refuse_secrets(OmegaConf.to_container(OmegaConf.load(path)))


def test_messages_and_recorded_commands_hold_no_secret_and_no_home_folder(monkeypatch):
    def redact_everywhere(said):
        assert str(ConfigError(said)) == Stopped(said).reason == redact(said), "wherever errors go"
        return redact(said)

    def redact_at(word):
        shown = []
        for home in ("/home/jane", "/", "/h"):
            monkeypatch.setenv("HOME", home)
            shown.append(redact_argument(word))
        return ", ".join(shown)

    check_cases(redact_everywhere, EXPECTED / "redacted.txt")
    check_cases(redact_at, EXPECTED / "redacted_words.txt")
