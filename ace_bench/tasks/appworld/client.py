"""A client of an environment server: the engine's HTTP interface over a Unix socket.

The server may be under the control of agent code, so the time and size of a reply are limited and its form is checked.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.typed import decoder_of

MAX_REPLY = 64 << 20
"""Longest reply that is read, in bytes."""


class Failure(StrEnum):
    """Why a call has no result."""

    TIMEOUT = "timeout"
    """It took too long, so the server was ended."""
    DISCONNECTED = "disconnected"
    """The connection broke."""
    ERROR_STATUS = "error status"
    """The server answered with an HTTP error."""
    INVALID = "invalid reply"
    """The reply does not have the engine's form."""
    TOO_LONG = "reply too long"
    """The reply is longer than ``MAX_REPLY``."""


class CallFailed(Exception):
    """A call without a result."""

    def __init__(self, failure: Failure):
        super().__init__(failure.value)
        self.failure = failure


class _Reply(msgspec.Struct):
    output: Any


class Client:
    """Calls one server about one task; ``end`` is called when a call takes too long."""

    def __init__(self, address: Path, task: str, end: Callable[[], None]):
        self._address = address
        self._task = task
        self._end = end

    def call(self, method: str, fields: Mapping[str, Any], *, seconds: float) -> Any:
        """Call a method of the environment and return its output; raises ``CallFailed``."""
        timed_out = threading.Event()

        def stop() -> None:
            timed_out.set()
            self._end()

        watchdog = threading.Timer(seconds, stop)
        watchdog.daemon = True
        watchdog.start()
        try:
            status, body = self._post(f"/{method}", json.dumps({"task_id": self._task, **fields}))
        except (OSError, http.client.HTTPException) as error:
            raise CallFailed(Failure.TIMEOUT if timed_out.is_set() else Failure.DISCONNECTED) from error
        finally:
            watchdog.cancel()
        if status != http.client.OK:
            raise CallFailed(Failure.ERROR_STATUS)
        try:
            return decoder_of(_Reply).decode(body).output
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CallFailed(Failure.INVALID) from error

    def _post(self, path: str, body: str) -> tuple[int, bytes]:
        connection = _UnixConnection(self._address)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read(MAX_REPLY + 1)
            if len(content) > MAX_REPLY:
                raise CallFailed(Failure.TOO_LONG)
            if response.length:  # fewer bytes came than were announced
                raise ConnectionError("the reply was cut")
            return response.status, content
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, address: Path):
        super().__init__("localhost")
        self._address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._address))
