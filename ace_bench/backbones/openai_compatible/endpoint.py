"""One HTTP endpoint: sends a request, returns an answer or a problem; an HTTP error is never raised."""

from __future__ import annotations

import base64
import email.utils
import json
import os
import threading
import time
import urllib.parse
import urllib.request
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ace_bench.backbones.openai_compatible.connections import Connection, Connections, TransportError
from ace_bench.backbones.openai_compatible.listed_models import (
    OTHER_PLACES,
    ListedModel,
    read_models,
    read_other_place,
)
from ace_bench.backbones.openai_compatible.problems import Problem, from_status
from ace_bench.backbones.openai_compatible.replies import Answer, read_answer, read_embeddings_answer
from ace_bench.backbones.openai_compatible.settings import Address
from ace_bench.core.errors import SettingError
from ace_bench.core.redaction import HIDDEN, SHORTEST, redact
from ace_bench.core.secret_forms import SecretForms
from ace_bench.core.types import Record


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
        self._opened: tuple[Connections, Secrets] | None = None
        self._close: Callable[[], object] = lambda: None

    @property
    def key(self) -> Record:
        """What decides whether a request gets through: the address, the model and the names of the keys."""
        return {one.name: getattr(self._address, one.name) for one in fields(Address) if one.name != "connections"}

    def at(self, base_url: str) -> Endpoint:
        """Return the same model, asked by the same keys, at another address."""
        return Endpoint(replace(self._address, base_url=base_url), self.setting)

    def pages_at(self, root: str, *, timeout: float | None = None) -> Endpoint:
        """Return the pages that the server shows beside its API, asked for by the same keys."""
        limit = timeout or self._address.timeout
        # The stock client reaches nothing beside the API.
        return Endpoint(replace(self._address, base_url=root, timeout=limit, client="built_in"), self.setting)

    def ready(self) -> Secrets:
        """Read the key; raises ``ConfigError`` if it is missing."""
        return self._open()[1]

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        with self._lock:
            self._close()
            self._opened = None

    def abort(self, grace: float) -> None:
        """Cut off the requests that are still under way after ``grace`` seconds."""
        if self._opened is not None:
            self._opened[0].abort(grace)

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
        named = [listed for listed in models if listed.id == self.model] or (models if len(models) == 1 else [])
        known = next((listed.context_length for listed in named), None)
        if known is not None or not models or not self.base_url.startswith("http:"):
            return known
        return self._unlisted_context_length()

    def _unlisted_context_length(self) -> int | None:
        """Ask the places beside the API where servers on a machine of one's own report the length."""
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
        connections, _ = self._open()
        try:
            response = connections.send(method, path, body, headers)
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

    def _open(self) -> tuple[Connections, Secrets]:
        if (opened := self._opened) is not None:
            return opened
        with self._lock:
            if self._opened is None:
                address = self._address
                secrets, make = self._stock() if address.client == "openai" else self._built_in()
                connections = Connections(make, timeout=address.timeout, keep=address.connections)
                # Closes the connections even if nobody calls ``close``.
                self._close = weakref.finalize(self, connections.close)
                self._opened = connections, secrets
            return self._opened

    def _built_in(self) -> tuple[Secrets, Callable[[], Connection]]:
        from ace_bench.backbones.openai_compatible.built_in_client import BuiltInConnection, Route

        secrets = read_secrets(self._address)
        own = {
            "authorization": f"Bearer {secrets.key}",
            "content-type": "application/json",
            "user-agent": "ace-bench",
            "accept-encoding": "identity",
        }
        route = Route(base_url=self.base_url, headers={**own, **secrets.headers}, timeout=self._address.timeout)
        return secrets, lambda: BuiltInConnection(route)

    def _stock(self) -> tuple[Secrets, Callable[[], Connection]]:
        from ace_bench.backbones.openai_compatible import stock_client as stock

        secrets = read_secrets(self._address, stock.secrets_of_environment())
        make = stock.maker(self.base_url, secrets.key, self.azure)
        settings = stock.http_settings(timeout=self._address.timeout, encrypted=self.base_url.startswith("https:"))
        return secrets, lambda: stock.StockConnection(make, settings, secrets.headers)


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


_PLACEHOLDER = "none"
"""Sent as the key to servers that need none; they ignore it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """The key of an endpoint, and the headers of the settings by their names in lower case. Its repr shows none."""

    key: str
    headers: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    """Texts to hide in replies and errors."""
    logins: tuple[str, ...] = ()
    """Proxy credentials to hide in errors."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"

    def hide(self, text: str) -> str:
        """Replace every secret in a reply. Short ones stay: servers without keys are often sent a word such as
        EMPTY."""
        return self._forms_in_replies.hide(text, HIDDEN)

    def hide_in_error(self, text: str) -> str:
        """Replace all secrets and everything that looks like one, such as partly masked keys."""
        return redact(self._forms_in_errors.hide(text, HIDDEN))

    @cached_property
    def _forms_in_replies(self) -> SecretForms:
        return SecretForms(secret for secret in self.texts if len(secret) >= SHORTEST)

    @cached_property
    def _forms_in_errors(self) -> SecretForms:
        return SecretForms((*self.texts, *self.logins))


def read_secrets(address: Address, others: Iterable[str] = ()) -> Secrets:
    """Read the environment; raises ``ConfigError`` naming the variable that is missing.

    ``others`` are further texts to hide.
    """
    variable, key = address.api_key_env, _PLACEHOLDER
    if variable is not None:
        key = _read("api_key_env", variable, "or set it to null where the server needs no key")
    own = {
        header: _read(f"headers_from_env.{header}", name, "or drop it")
        for header, name in (address.headers_from_env or {}).items()
    }
    sent = {*own.values(), *others, *([] if variable is None else [key])}
    headers = {name.lower(): value for name, value in {**(address.extra_headers or {}), **own}.items()}
    return Secrets(key=key, headers=headers, texts=(*sent,), logins=(*_logins_of_proxies(),))


def _logins_of_proxies() -> Iterator[str]:
    """Yield the credentials of the environment's proxies: a proxy's error page may repeat them."""
    for address in urllib.request.getproxies().values():
        login, at, _ = address.rpartition("://")[2].rpartition("@")
        if at and (password := urllib.parse.unquote(login.partition(":")[2])):
            yield password
            yield base64.b64encode(urllib.parse.unquote(login).encode()).decode()


def _read(setting: str, name: str, otherwise: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingError(f"{setting}={name} names a variable that is not set: export {name}=..., {otherwise}")
    if not (value.isascii() and value.isprintable()):
        raise SettingError(
            f"{setting}={name} names a variable whose value contains characters that HTTP headers do not allow: "
            "correct its value"
        )
    return value
