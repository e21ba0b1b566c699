"""Azure OpenAI: the addresses of its deployments, keys, and tokens of Entra ID."""

import sys
from types import ModuleType

import pytest

from ace_bench.backbones.openai_compatible.azure import Azure
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from tests.backbones.openai_compatible.scripted import PROMPT, client, error, serving

VERSION = "2024-10-21"


def azure_client(server, *, deployment=None, entra=False, **settings):
    azure = Azure(api_version=VERSION, deployment=deployment, entra=entra)
    return client(server.url.removesuffix("/v1"), azure=azure, **settings)


@pytest.mark.parametrize(("deployment", "named"), [(None, "tiny"), ("my-gpt", "my-gpt")])
def test_azure_is_asked_for_the_deployment_with_its_key(deployment, named, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123456789")
    with serving() as server:
        backbone = azure_client(server, deployment=deployment, api_key_env="AZURE_OPENAI_API_KEY")
        assert backbone.complete(PROMPT, role="g", session="s").text == "fine"
        assert backbone.probe().facts["key"] == "from AZURE_OPENAI_API_KEY"
    path, headers, body = server.seen[0]
    assert path == f"/openai/deployments/{named}/chat/completions?api-version={VERSION}"
    assert headers["api-key"] == "azure-key-0123456789"
    assert "authorization" not in headers
    assert body["max_tokens"] == 4096


def test_an_unknown_deployment_names_its_setting(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123456789")
    missing = error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound")
    with serving(missing) as server, pytest.raises(ConfigError, match=r"backbone\.azure\.deployment=tiny"):
        azure_client(server, api_key_env="AZURE_OPENAI_API_KEY").probe()


@pytest.fixture
def entra(monkeypatch):
    """Put a stand-in in the place of azure-identity, which is not among the dependencies; return its tokens."""
    tokens: list[str | Exception] = []
    identity, exceptions = ModuleType("azure.identity"), ModuleType("azure.core.exceptions")

    class AzureError(Exception):
        pass

    def provide():
        token = tokens.pop(0)
        if isinstance(token, Exception):
            raise token
        return token

    exceptions.AzureError = AzureError
    identity.DefaultAzureCredential = object
    identity.get_bearer_token_provider = lambda *_: provide
    for module in (ModuleType("azure"), ModuleType("azure.core"), identity, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return tokens


def test_tokens_of_entra_take_the_place_of_a_key_and_are_renewed(entra):
    entra += ["eyJfirst.token.of-two", "eyJsecond.token.of-two"]
    with serving() as server:
        backbone = azure_client(server, entra=True)
        for session in ("s", "t"):
            backbone.complete(PROMPT, role="g", session=session)
        entra += ["eyJfirst.token.of-two"] * 9
        assert backbone.probe().facts["key"] == "from Microsoft Entra ID"
    sent = [headers["authorization"] for _, headers, _ in server.seen[:2]]
    assert sent == ["Bearer eyJfirst.token.of-two", "Bearer eyJsecond.token.of-two"]
    assert "api-key" not in server.seen[0][1]


def test_without_a_token_the_run_stops_before_a_call(entra):
    failed = sys.modules["azure.core.exceptions"].AzureError("DefaultAzureCredential failed:\n  no account")
    entra += [failed, failed]
    with serving() as server:
        backbone = azure_client(server, entra=True)
        with pytest.raises(BackboneUnavailable, match=r"failed: no account\): sign in with az login"):
            backbone.probe()
        with pytest.raises(BackboneUnavailable):
            backbone.complete(PROMPT, role="g", session="s")
        assert not server.seen


def test_without_azure_identity_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.core.exceptions", None)
    with serving() as server, pytest.raises(ConfigError, match="azure-identity"):
        azure_client(server, entra=True).check()
