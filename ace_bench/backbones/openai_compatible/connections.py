"""Connections to one server: one HTTP client for each call under way, and a time limit for the whole call.

A socket's limit is for each read, so a server that sends a byte now and then could hold a call for ever: a watchdog
ends such calls.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

# Servers built on uvicorn close a connection that idled for 5 s; one that idled less is safe to use again.
KEEPALIVE_S = 4.0
CONNECT_S = 10.0

Kind = Literal["unreachable", "timeout", "dropped"]


class TransportError(Exception):
    """A request that got no response: the server is ``unreachable``, it took too long, or the connection was lost."""

    def __init__(self, kind: Kind, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A whole response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Connection:
    """Base class: a client for one call at a time, which keeps at most one connection open."""

    was_cut = False

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send a request and read the whole reply; raises ``TransportError``."""
        raise NotImplementedError

    def opened(self) -> socket.socket | None:
        """Return the socket that is open."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError

    def cut(self) -> None:
        """End the request under way, from another thread: it raises a read error."""
        self.was_cut = True
        sock = self.opened()
        if sock is not None:
            with suppress(OSError):  # it may have ended by itself
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # an SSL socket's own would drop its encryption


class Connections:
    """A pool of connections for many threads, and a thread that cuts calls which take longer than ``timeout`` seconds.

    ``make`` creates a connection, which opens at its first call; ``keep`` of them stay open when no call needs them.
    """

    def __init__(self, make: Callable[[], Connection], *, timeout: float, keep: int):
        self._make = make
        self._timeout = timeout
        self._keep = keep
        # Reuse the most recent connection first, so that the others can time out and be closed.
        self._idle: deque[Connection] = deque()
        self._ends: dict[Connection, float] = {}  # the first to end comes first: all have the same limit
        self._watchdog: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._aborted = False

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send a request and read the whole reply; raises ``TransportError``, also after ``timeout``."""
        self._start_watchdog()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._make()
        self._ends[connection] = time.monotonic() + self._timeout
        try:
            if self._aborted:
                raise TransportError("dropped", "the run is being stopped")
            response = connection.send(method, path, body, headers)
        except BaseException as error:
            connection.close()
            if connection.was_cut and not self._aborted and isinstance(error, TransportError):
                raise TransportError("timeout", "the time for the whole call is over") from error
            raise
        finally:
            self._ends.pop(connection, None)
        if self._closed.is_set() or connection.was_cut:
            connection.close()
            return response
        self._idle.append(connection)
        if len(self._idle) > self._keep:
            self._idle.popleft().close()
        return response

    def abort(self, grace: float) -> None:
        """Cut off calls still in flight after ``grace`` seconds, and refuse later ones."""
        timer = threading.Timer(grace, self._cut_off)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Close the idle connections; those in use close when their reply has come, with only a limit per read."""
        self._closed.set()
        while self._idle:
            self._idle.pop().close()

    def _cut_off(self) -> None:
        self._aborted = True
        for connection in tuple(self._ends):
            connection.cut()

    def _start_watchdog(self) -> None:
        with self._lock:
            if self._watchdog is None:
                self._watchdog = threading.Thread(target=self._watch, name="call-watchdog", daemon=True)
                self._watchdog.start()

    def _watch(self) -> None:
        # A call that starts while this thread sleeps cannot end before a whole limit has passed.
        pause = self._timeout
        while not self._closed.wait(pause):
            now, pause = time.monotonic(), self._timeout
            for connection, end in tuple(self._ends.items()):
                if end > now:
                    pause = end - now
                    break
                connection.cut()
