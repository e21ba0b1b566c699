"""The stock ``openai`` package as the client that sends requests, to Azure as well.

Its own retries are off. Replies and errors are handed on as the server sent them, so that one reader handles them for
every client. Versions 2 (on httpx) and 3 (on httpx2) both work.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import openai
import orjson

from ace_bench.backbones.openai_compatible import connections
from ace_bench.backbones.openai_compatible.connections import (
    CONNECT_S,
    Connection,
    Kind,
    Response,
    TransportError,
)
from ace_bench.backbones.openai_compatible.settings import Azure
from ace_bench.core.errors import BackboneUnavailable, SettingError
from ace_bench.core.redaction import redact

_ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


class StockConnection(Connection):
    """A stock client with one connection. ``headers`` replace those that the stock client sets."""

    def __init__(self, make: Callable[..., openai.OpenAI], settings: Mapping[str, Any], headers: Mapping[str, str]):
        http = library().Client(**settings)
        self._http = http
        self._stream: Any = None
        self._headers = headers
        http.event_hooks = {"request": [self._prepare]}
        client = make(http_client=http, timeout=http.timeout, max_retries=0)
        self._create = client.chat.completions.with_raw_response.create
        self._list = client.models.with_raw_response.list

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Ask for a chat completion, or for the models without a ``body``; raises ``TransportError``."""
        del method, path  # the stock client knows them
        try:
            reply = self._ask(body, headers)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise TransportError(_kind(cause), str(cause) or type(cause).__name__) from error
        except (library().InvalidURL, UnicodeError) as error:
            raise TransportError("dropped", str(error)) from error
        return Response(status=reply.status_code, headers=dict(reply.headers), content=reply.content)

    def opened(self) -> Any:
        """Return the socket that is open."""
        return None if self._stream is None else self._stream.get_extra_info("socket")

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _ask(self, body: bytes | None, headers: Mapping[str, str]) -> Any:
        try:
            if body is None:
                return self._list().http_response
            fields = orjson.loads(body)
            model, messages = fields.pop("model"), fields.pop("messages")
            return self._create(model=model, messages=messages, extra_body=fields, extra_headers=headers).http_response
        except openai.APIStatusError as error:
            return error.response

    def _prepare(self, request: Any) -> None:
        request.headers.update(self._headers)
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the connection that the library opens, so that ``cut`` can end it."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._stream = info["return_value"]


def _kind(error: BaseException) -> Kind:
    """Classify an error by its name, which is the same in httpx and httpx2."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"ConnectTimeout", "ConnectError"}:
        return "unreachable"
    return "timeout" if "TimeoutException" in names else "dropped"


def http_settings(*, timeout: float, encrypted: bool) -> dict[str, Any]:
    """Return the settings of its HTTP clients; ``timeout`` is in seconds a read.

    Redirects are not followed: the key must not travel to another address. Proxies and certificates come from the
    environment.
    """
    found = library()
    # It logs every request at INFO, which would fill the console of a run with thousands of lines.
    logging.getLogger(found.__name__).setLevel(logging.WARNING)
    return {
        "timeout": found.Timeout(timeout, connect=min(CONNECT_S, timeout)),
        "limits": found.Limits(max_connections=1, keepalive_expiry=connections.KEEPALIVE_S),
        "verify": found.create_ssl_context() if encrypted else False,  # made once: reading certificates is slow
    }


def library() -> Any:
    """Return the HTTP library of the installed ``openai``: httpx or httpx2."""
    return sys.modules[openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]


def maker(base_url: str, key: str, azure: Azure) -> Callable[..., openai.OpenAI]:
    """Return what makes a stock client; raises ``SettingError`` if azure-identity is missing."""
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
