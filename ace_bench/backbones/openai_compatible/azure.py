"""Azure OpenAI: where its requests go, and tokens of Microsoft Entra ID in the place of a key."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from ace_bench.core.errors import BackboneUnavailable, SettingError
from ace_bench.core.redaction import redact
from ace_bench.core.settings import Text

_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


@dataclass(frozen=True, kw_only=True)
class Azure:
    """Azure OpenAI, if ``api_version`` (such as 2024-10-21) is set; ``base_url`` is then the resource's address.

    ``deployment`` is ``None`` if it has the model's name. ``entra``: tokens of azure-identity's default credential
    take the place of a key.
    """

    api_version: Text | None = None
    deployment: Text | None = None
    entra: bool = False

    def check(self, *, base_url: str, api_key_env: str | None) -> None:
        """Raise ``SettingError`` for settings that do not fit together."""
        if self.api_version is None:
            if self.deployment or self.entra:
                raise SettingError("azure.api_version is not set: set it, as in azure.api_version=2024-10-21")
            return
        if "/openai" in base_url or base_url.rstrip("/").endswith("/v1"):
            raise SettingError(f"base_url={base_url} must be the resource's address, without /openai or /v1")
        if self.entra == (api_key_env is not None):
            raise SettingError(
                f"azure.entra={str(self.entra).lower()} does not fit api_key_env={api_key_env or 'null'}: name the "
                "key's variable in api_key_env, or set azure.entra=true and api_key_env=null"
            )

    def path(self, path: str, model: str) -> str:
        """Return where the resource serves a path of the API. The list of models belongs to no deployment."""
        if self.api_version is None:
            return path
        deployment = urllib.parse.quote(self.deployment or model, safe="")
        prefix = "/openai" if path == "/models" else f"/openai/deployments/{deployment}"
        return f"{prefix}{path}?api-version={urllib.parse.quote(self.api_version, safe='')}"

    def key_header(self, key: str) -> dict[str, str]:
        """Return the header that carries a key."""
        return {"authorization": f"Bearer {key}"} if self.api_version is None else {"api-key": key}


NOT_AZURE = Azure()


def entra_tokens() -> Callable[[], str]:
    """Return a function that gives a valid token; raises ``SettingError`` if azure-identity is missing."""
    try:
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    except ImportError as error:
        raise SettingError("azure.entra=true needs the package azure-identity: install it") from error
    provide = get_bearer_token_provider(DefaultAzureCredential(), _ENTRA_SCOPE)

    def token() -> str:
        try:
            return str(provide())
        except AzureError as error:
            message = redact(" ".join(str(error).split()))[:200]
            raise BackboneUnavailable(f"Microsoft Entra ID gave no token ({message}): sign in with az login") from None

    return token
