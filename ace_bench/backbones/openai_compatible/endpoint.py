"""One HTTP endpoint: sends a request, returns an answer or a problem; an HTTP error is never raised."""

from __future__ import annotations

import email.utils
import json
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ace_bench.backbones.http.route import Route
from ace_bench.backbones.http.transport import Transport, TransportError
from ace_bench.backbones.openai_compatible.azure import NOT_AZURE, entra_tokens
from ace_bench.backbones.openai_compatible.keys import Secrets, read_secrets
from ace_bench.backbones.openai_compatible.listed_models import (
    OTHER_PLACES,
    ListedModel,
    read_models,
    read_other_place,
)
from ace_bench.backbones.openai_compatible.problems import Problem, from_status
from ace_bench.backbones.openai_compatible.replies import Answer, read_answer, read_embeddings_answer
from ace_bench.backbones.openai_compatible.settings import Address
from ace_bench.core.types import Record


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """An endpoint whose key was read. ``token`` gives Entra ID's in the place of a key."""

    transport: Transport
    secrets: Secrets
    token: Callable[[], str] | None


class Endpoint:
    """Connections shared by all threads, opened at first use, because that needs the key.

    ``setting`` is what the user's settings call the address, for messages.
    """

    def __init__(self, address: Address, setting: str = "base_url"):
        self.setting = setting
        self.base_url = address.base_url
        self.model = address.model or ""
        self.api_key_env = address.api_key_env
        self.azure = address.azure
        self._address = address
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._close: Callable[[], object] = lambda: None

    @property
    def key(self) -> Record:
        """What decides whether a request gets through: the address, the model and the names of the keys."""
        return {setting.name: getattr(self._address, setting.name) for setting in fields(Address)}

    def at(self, base_url: str) -> Endpoint:
        """Return the same model, asked by the same keys, at another address."""
        return Endpoint(replace(self._address, base_url=base_url), self.setting)

    def pages_at(self, root: str, *, timeout: float | None = None) -> Endpoint:
        """Return the pages that the server shows beside its API, asked for by the same keys."""
        address = replace(self._address, base_url=root, timeout=timeout or self._address.timeout, azure=NOT_AZURE)
        return Endpoint(address, self.setting)

    def ready(self) -> Secrets:
        """Read the key; raises ``ConfigError`` if it is missing."""
        return self._open().secrets

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        with self._lock:
            self._close()
            self._opened = None

    def abort(self, grace: float) -> None:
        """Cut off the requests that are still under way after ``grace`` seconds."""
        if self._opened is not None:
            self._opened.transport.abort(grace)

    def chat(self, body: bytes, headers: Mapping[str, str]) -> Answer | Problem:
        """Send one chat completion."""
        reply = self._send("POST", "/chat/completions", body, headers)
        return reply if isinstance(reply, Problem) else read_answer(reply)

    def embeddings(self, body: bytes) -> Answer | Problem:
        """Ask for embeddings; the text of the answer is the server's JSON."""
        reply = self._send("POST", "/embeddings", body, {})
        return reply if isinstance(reply, Problem) else read_embeddings_answer(reply)

    def models(self) -> Sequence[ListedModel]:
        """Return the models that the server lists; empty if its list cannot be read."""
        reply = self._send("GET", "/models", None, {})
        return () if isinstance(reply, Problem) else read_models(reply)

    def context_length(self) -> int | None:
        """Return the context length that the server serves the model with, ``None`` if it does not say.

        A server with one model may ignore the name in requests, as llama.cpp's does: its length counts.
        """
        models = self.models()
        served = [listed for listed in models if listed.id == self.model] or (models if len(models) == 1 else [])
        length = next((listed.context_length for listed in served), None)
        if length is not None or not models or not self.base_url.startswith("http:"):
            return length
        return self._unlisted_context_length()

    def _unlisted_context_length(self) -> int | None:
        """Ask the paths next to the API where self-hosted servers report the context length."""
        pages = self.pages_at(self.base_url.rstrip("/").removesuffix("/v1"))
        try:
            replies = ((path, pages._send("GET", path, None, {})) for path in OTHER_PLACES)
            lengths = (
                read_other_place(path, reply, self.model) for path, reply in replies if not isinstance(reply, Problem)
            )
            return next((length for length in lengths if length is not None), None)
        finally:
            pages.close()

    def page(self, path: str) -> str | None:
        """Return what the server shows at a path, ``None`` if it does not answer."""
        reply = self._send("GET", path, None, {})
        return None if isinstance(reply, Problem) else reply.decode(errors="replace")

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes | Problem:
        opened = self._open()
        if opened.token is not None:
            headers = {"authorization": f"Bearer {opened.token()}", **headers}
        try:
            response = opened.transport.send(method, self.azure.path(path, self.model), body, headers)
        except TransportError as error:
            message = {
                "unreachable": str(error),
                "timeout": f"no answer within timeout={self._address.timeout:g} s",
                "dropped": f"the connection was lost: {error}",
            }[error.kind]
            return Problem(kind=error.kind, message=message)
        if 200 <= response.status < 300:
            return response.content
        return from_status(response.status, _json_or_text(response.content), retry_after=_retry_after(response.headers))

    def _open(self) -> _Opened:
        if (opened := self._opened) is not None:
            return opened
        with self._lock:
            if self._opened is None:
                self._opened = self._connect()
                # Closes the connections even if nobody calls ``close``.
                self._close = weakref.finalize(self, self._opened.transport.close)
            return self._opened

    def _connect(self) -> _Opened:
        """Read the keys; the transport connects at its first request."""
        address, secrets = self._address, read_secrets(self._address)
        usual = {"content-type": "application/json", "user-agent": "ace-bench", "accept-encoding": "identity"}
        key = {} if self.azure.entra else self.azure.key_header(secrets.key)
        route = Route(base_url=self.base_url, headers={**usual, **key, **secrets.headers}, timeout=address.timeout)
        return _Opened(
            transport=Transport(route),
            secrets=secrets,
            token=entra_tokens() if self.azure.entra else None,
        )


def _json_or_text(body: bytes) -> Any:
    text = body.decode(errors="replace").strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks: ``retry-after-ms``, or ``retry-after`` in seconds or as an HTTP date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        return seconds if seconds >= 0 else 0.0  # not a number compares as false
    try:
        return max(email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time(), 0.0)
    except (KeyError, ValueError):
        return None
