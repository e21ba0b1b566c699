"""One HTTP endpoint through the official client: sends bytes, returns an answer or a problem, raises nothing."""

from __future__ import annotations

import email.utils
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.backbones.openai_compatible.problems import Problem, from_status
from ace_bench.backbones.openai_compatible.replies import Answer, read_answer
from ace_bench.backbones.openai_compatible.secret import Secrets, read_secrets
from ace_bench.core.typed import decoder_of

if TYPE_CHECKING:
    from openai import APIConnectionError, OpenAI

_CONNECT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where to send requests and as whom. ``timeout`` is in seconds an attempt, from its start to its last byte.

    ``connections`` are kept open between calls; more are opened when more calls are under way.
    """

    base_url: str
    model: str
    api_key_env: str | None
    headers: Mapping[str, str]
    headers_from_env: Mapping[str, str]
    timeout: float
    connections: int


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What the first call makes."""

    client: OpenAI
    secrets: Secrets
    turn: AbstractContextManager[object]
    abort: Callable[[float], None]


class Endpoint:
    """A client shared by all threads, made at first use: importing it takes a second and making it needs the key."""

    def __init__(self, address: Address):
        self.base_url = address.base_url
        self.model = address.model
        self.api_key_env = address.api_key_env
        self._address = address
        self._lock = threading.Lock()
        self._made: _Made | None = None

    def ready(self) -> Secrets:
        """Make the client if it is not made yet; raises ``ConfigError`` where the key is missing."""
        return self._ready().secrets

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        with self._lock:
            if self._made is not None:
                self._close()
            self._made = None

    def abort(self, grace: float) -> None:
        """Cut off the requests that are still under way after ``grace`` seconds."""
        made = self._made
        if made is not None:
            made.abort(grace)

    def chat(self, body: bytes, headers: Mapping[str, str]) -> Answer | Problem:
        """Send one chat completion."""
        reply = self._send("POST", "/chat/completions", body, headers)
        return reply if isinstance(reply, Problem) else read_answer(reply)

    def models(self) -> Sequence[str]:
        """Return the names that the server lists, none where it lists nothing readable."""
        reply = self._send("GET", "/models", None, {})
        if isinstance(reply, Problem):
            return ()
        try:
            listed = decoder_of(_Models).decode(reply).data
        except msgspec.DecodeError:
            return ()
        return [model.id for model in listed]

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes | Problem:
        import httpx2
        import openai

        made = self._ready()
        url = f"{self.base_url.rstrip('/')}{path}"  # whole, because the client takes long to join one
        try:
            # Raw bytes in both directions: building the client's typed objects would double the cost of a call.
            with made.turn:
                if method == "GET":
                    return made.client.get(url, cast_to=httpx2.Response, options={"headers": headers}).content
                return made.client.post(
                    url, cast_to=httpx2.Response, content=body, options={"headers": headers}
                ).content
        except openai.APIStatusError as error:
            body_said = error.body if error.body is not None else str(error)
            return from_status(error.status_code, body_said, retry_after=_retry_after(error.response.headers))
        except openai.APITimeoutError as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                return Problem(kind="unreachable", message=f"no connection within {_CONNECT_S:g} s")
            return Problem(kind="timeout", message=f"no answer within timeout={self._address.timeout:g} s")
        except openai.APIConnectionError as error:
            return _connection_problem(error)

    def _ready(self) -> _Made:
        made = self._made
        if made is None:
            with self._lock:
                made = self._made = self._made or self._make()
        return made

    def _make(self) -> _Made:
        secrets = read_secrets(self.api_key_env, self._address.headers_from_env)
        from openai import Omit, OpenAI

        from ace_bench.backbones.openai_compatible.wire import connector

        # It logs every request at INFO, which would fill the console of a run with thousands of lines.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        http = connector(
            self.base_url, timeout=self._address.timeout, connect=_CONNECT_S, keep=self._address.connections
        )
        # Also where nobody calls close: an endpoint that is dropped leaves no connection behind.
        self._close = weakref.finalize(self, http.client.close)
        client = OpenAI(api_key=secrets.key, base_url=self.base_url, max_retries=0, http_client=http.client)
        # No endpoint needs to know the user's system, and every header costs time in every call.
        unasked: dict[str, Any] = {name: Omit() for name in client.default_headers if name.startswith("X-Stainless")}
        headers = {**unasked, **self._address.headers, **secrets.headers}
        client = client.with_options(default_headers=headers)
        return _Made(client=client, secrets=secrets, turn=http.turn, abort=http.abort)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] = []


def _connection_problem(error: APIConnectionError) -> Problem:
    import httpx2

    cause = error.__cause__
    words = str(cause or error) or type(cause).__name__
    if isinstance(cause, httpx2.ConnectError):
        return Problem(kind="unreachable", message=words)
    return Problem(kind="dropped", message=f"the connection was lost: {words}")


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


def encode(request: Mapping[str, Any]) -> bytes:
    """Encode a request body."""
    return msgspec.json.encode(request)
