"""The stock openai package as the client: Azure, tokens of Entra ID and what it reads from the environment."""

import sys
from types import ModuleType

import pytest

from ace_bench.backbones.openai_compatible.settings import Azure, CacheHints
from ace_bench.core.errors import BackboneUnavailable, ConfigError, RolloutFault
from tests.backbones.openai_compatible.scripted import PROMPT, Reply, client, complete, error, serving

VERSION = "2024-10-21"


def azure_client(server, *, deployment=None, entra=False, **settings):
    azure = Azure(api_version=VERSION, deployment=deployment, entra=entra)
    return client(server.url.removesuffix("/v1"), client="openai", azure=azure, **settings)


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


def test_the_environment_of_the_stock_client_is_sent_its_secrets_are_hidden_and_settings_win(monkeypatch):
    monkeypatch.setenv("MY_AUTH", "Bearer other-key-123456")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-token-987\nX-Team: base")
    settings = {"headers_from_env": {"authorization": "MY_AUTH"}, "cache": CacheHints(session_header="X-Session")}
    with serving(Reply(status=400, body="ECHO")) as server, pytest.raises(RolloutFault) as caught:
        complete(server.url, client="openai", extra_headers={"x-team": "ace"}, **settings)
    headers = server.seen[0][1]
    assert (headers["openai-organization"], headers["x-team"], "x-session" in headers) == ("org-1", "ace", True)
    assert headers["authorization"] == "Bearer other-key-123456"
    if "x-gateway" in headers:  # the first releases of openai 2 do not read this variable
        assert headers["x-gateway"] == "gateway-token-987"
    assert "gateway-token" not in str(caught.value)
