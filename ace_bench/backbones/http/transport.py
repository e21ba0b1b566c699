"""Sends requests to one server from many threads; ours, because no library keeps the server as busy.

There is one connection for each call under way, and a limit for each call. docs/design/transport.md has the figures.
"""

from __future__ import annotations

import select
import socket
import threading
import time
import zlib
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Literal

from ace_bench.backbones.http.framing import Incoming, Response, read_reply
from ace_bench.backbones.http.route import Route, encode_headers

# Servers built on uvicorn close a connection that idled for 5 s; one that idled less is safe to use again.
KEEPALIVE_S = 4.0
_LARGE = 1 << 16
"""Bytes of a body that is sent as it is: to copy it costs more than another call of the system."""

Kind = Literal["unreachable", "timeout", "dropped"]


class TransportError(Exception):
    """A request that got no response: the server is ``unreachable``, it took too long, or the connection was lost."""

    def __init__(self, kind: Kind, message: str):
        super().__init__(message)
        self.kind = kind


class Transport:
    """A pool of connections to the server of a route, as many as there were calls in flight of late.

    Redirects are not followed, because the key must not travel to another address.
    """

    def __init__(self, route: Route):
        self._route = route
        # The most recent connection is used first, so that the others idle long enough to be closed.
        self._idle: deque[_Connection] = deque()
        self._busy: set[_Connection] = set()
        self._closed = False
        self._aborted = False

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send a request and read the whole reply; raises ``TransportError``."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _Connection(self._route)
        self._busy.add(connection)
        try:
            if self._aborted:
                raise TransportError("dropped", "the run is being stopped")
            response = connection.send(method, path, body or b"", headers)
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
        if self._closed or connection.was_cut:
            connection.close()
            return response
        self._idle.append(connection)
        self._close_stale()
        return response

    def abort(self, grace: float) -> None:
        """Cut off calls still in flight after ``grace`` seconds, and refuse later ones."""
        timer = threading.Timer(grace, self._cut_off)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Close the idle connections; the others close when their reply has come."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _close_stale(self) -> None:
        with suppress(IndexError, ValueError):  # another thread may take the last one, or the oldest
            while (oldest := self._idle[0]).is_stale:
                self._idle.remove(oldest)
                oldest.close()

    def _cut_off(self) -> None:
        self._aborted = True
        for connection in tuple(self._busy):
            connection.cut()


class _Connection:
    """Sends one request at a time, and opens a socket when it needs one."""

    def __init__(self, route: Route):
        self.was_cut = False
        self._route = route
        self._sock: socket.socket | None = None
        self._used = 0.0

    @property
    def is_stale(self) -> bool:
        """Whether it idled so long that the server may be about to close it."""
        return time.monotonic() - self._used > KEEPALIVE_S

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a request and read the whole reply; raises ``TransportError``."""
        deadline = time.monotonic() + self._route.timeout
        sock = self._open_socket()
        try:
            head = b"%b%bcontent-length: %d\r\n\r\n" % (
                self._route.head(method, path),
                encode_headers(headers),
                len(body),
            )
            response, reusable = _exchange(sock, deadline, [head + body] if len(body) < _LARGE else [head, body])
            if self.was_cut and not reusable:
                raise OSError("the reply was cut off")  # its end may be the cut
        except TimeoutError as error:
            raise TransportError("timeout", "no answer in time") from error
        except (OSError, HTTPException, ValueError, zlib.error) as error:
            raise TransportError("dropped", str(error) or type(error).__name__) from error
        if reusable:
            self._used = time.monotonic()
        else:
            self.close()
        return response

    def cut(self) -> None:
        """End the request under way, from another thread: it raises an error."""
        self.was_cut = True
        if (sock := self._sock) is not None:
            with suppress(OSError):  # it may have ended by itself
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # an SSL socket's own would drop its encryption

    def close(self) -> None:
        """Close the socket; the next request opens another."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _open_socket(self) -> socket.socket:
        """Return the open socket, or a new one if the server closed it, or may be about to."""
        kept = self._sock
        if kept is not None and not self.is_stale and not _has_ended(kept):
            return kept
        self.close()
        try:
            self._sock = self._route.connect()
        except TimeoutError as error:
            raise TransportError("unreachable", "no connection in time") from error
        except (OSError, HTTPException, UnicodeError) as error:
            raise TransportError("unreachable", str(error) or type(error).__name__) from error
        if self.was_cut:
            raise TransportError("dropped", "the run is being stopped")
        return self._sock


def _exchange(sock: socket.socket, deadline: float, request: list[bytes]) -> tuple[Response, bool]:
    sock.settimeout(max(deadline - time.monotonic(), 0.001))  # of the whole of each part
    with suppress(ConnectionError):  # the server may have said why before it closed the connection
        for part in request:
            sock.sendall(part)
    return read_reply(Incoming(sock, deadline))


def _has_ended(sock: socket.socket) -> bool:
    """Whether the server closed the connection, or sent bytes that nobody asked for."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
