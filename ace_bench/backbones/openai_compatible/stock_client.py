"""The stock ``openai`` package as the client that sends requests, to Azure as well.

Its own retries are off. Replies and errors are handed on as the server sent them, so that one reader handles them for
every client. Versions 2 (on httpx) and 3 (on httpx2) both work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx2
import openai
import orjson

from ace_bench.backbones.openai_compatible.connections import Connection
from ace_bench.backbones.openai_compatible.settings import Azure
from ace_bench.core.errors import BackboneUnavailable, SettingError
from ace_bench.core.redaction import redact

_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


class StockConnection(Connection):
    """A stock client with one connection. ``headers`` replace those that the stock client sets."""

    def __init__(self, make: Callable[..., openai.OpenAI], settings: Mapping[str, Any], headers: Mapping[str, str]):
        http = library().Client(**settings)
        super().__init__(http)
        self._headers = headers
        http.event_hooks = {"request": [self._prepare]}
        client = make(http_client=http, timeout=http.timeout, max_retries=0)
        self._create = client.chat.completions.with_raw_response.create
        self._list = client.models.with_raw_response.list

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> httpx2.Response:
        """Ask for a chat completion, or for the models without a ``body``; raises ``httpx2.HTTPError``."""
        del method, url  # the stock client knows them
        try:
            if body is None:
                return self._list().http_response
            fields = orjson.loads(body)
            model, messages = fields.pop("model"), fields.pop("messages")
            return self._create(model=model, messages=messages, extra_body=fields, extra_headers=headers).http_response
        except openai.APIStatusError as error:
            return error.response
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            # The errors of httpx and httpx2 have the same names.
            raise getattr(httpx2, type(cause).__name__, httpx2.ReadError)(str(cause)) from error

    def _prepare(self, request: Any) -> None:
        request.headers.update(self._headers)
        request.extensions["trace"] = self.trace


def library() -> Any:
    """Return the HTTP library of the installed ``openai``: httpx or httpx2."""
    return sys.modules[openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]


def maker(base_url: str, key: str, azure: Azure) -> Callable[..., openai.OpenAI]:
    """Return what makes a stock client; raises ``SettingError`` where azure-identity is missing."""
    if azure.api_version is None:
        return lambda **http: openai.OpenAI(base_url=base_url, api_key=key, **http)
    access: dict[str, Any] = {"azure_ad_token_provider": _entra_tokens()} if azure.entra else {"api_key": key}
    return lambda **http: openai.AzureOpenAI(
        azure_endpoint=base_url, azure_deployment=azure.deployment, api_version=azure.api_version, **access, **http
    )


def secrets_of_environment() -> Iterable[str]:
    """Return the values of the headers that the stock client reads from the environment."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    return [value for line in lines if (value := line.partition(":")[2].strip())]


def _entra_tokens() -> Callable[[], str]:
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
            words = redact(" ".join(str(error).split()))[:200]
            raise BackboneUnavailable(f"Microsoft Entra ID gave no token ({words}): sign in with az login") from None

    return token
