"""HTTP/1.1 by the standard library, as the transport under the official client.

CPU is what keeps a run from its ideal time when many calls are under way, so two things are done about it. With 64
threads a call takes a third less than over the client's own transport, which looks at every open connection for every
request. And the client's own work is done by one thread at a time: threads that compete for the interpreter wake each
other up for nothing. Nobody waits for a server meanwhile: a request that is on its way gives up its turn.
"""

from __future__ import annotations

import http.client
import io
import select
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2

# Servers built on uvicorn close a connection that idled for 5 s; one that idled less is safe to use again.
_KEEPALIVE_S = 4.0


class _Deadline(io.RawIOBase):
    """Reads from a socket until a moment of the monotonic clock: the socket's own timeout begins anew at every read."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float):
        self._raw = raw
        self._sock = sock
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Reply(http.client.HTTPResponse):
    """A reply that must have come as a whole by a moment of the monotonic clock."""

    def __init__(self, sock: socket.socket, *args: Any, until: float, **more: Any):
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Deadline(self.fp.detach(), sock, until))


@dataclass(eq=False)
class _Lane:
    """One open connection and when it was last used."""

    connection: http.client.HTTPConnection
    used: float = field(default_factory=time.monotonic)

    @property
    def fresh(self) -> bool:
        sock: socket.socket | None = self.connection.sock
        return sock is not None and time.monotonic() - self.used < _KEEPALIVE_S and not _readable(sock)


class Wire(httpx2.BaseTransport):
    """Sends requests to one origin; safe to use from many threads that each hold ``turn`` when they come.

    At most ``keep`` idle connections stay open.
    """

    def __init__(self, *, keep: int, context: ssl.SSLContext | None, turn: threading.Lock):
        self._turn = turn
        self._keep = keep
        self._context = context
        # The connection used last is used next: the others may grow old and be closed.
        self._idle: deque[_Lane] = deque()
        self._busy: set[_Lane] = set()
        self._closed = self._aborted = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request and read the whole reply; raises the transport errors of the client's library."""
        self._turn.release()
        try:
            return self._exchange(request)
        finally:
            self._turn.acquire()

    def close(self) -> None:
        """Close the idle connections; those in use close when their reply has come."""
        self._closed = True
        while self._idle:
            self._idle.pop().connection.close()

    def abort(self, grace: float) -> None:
        """Cut off what is still under way after ``grace`` seconds, and refuse what comes later."""
        timer = threading.Timer(grace, self._cut_off)
        timer.daemon = True
        timer.start()

    def _cut_off(self) -> None:
        self._aborted = True
        for lane in tuple(self._busy):
            with suppress(OSError):  # it may have come to its end by now
                lane.connection.sock.shutdown(socket.SHUT_RDWR)

    def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        timeouts = request.extensions["timeout"]
        until = time.monotonic() + timeouts["read"]
        lane = self._fresh_lane() or self._connected(request, timeouts["connect"])
        self._busy.add(lane)
        try:
            if self._aborted:
                raise ConnectionAbortedError("the run is being stopped")
            connection = lane.connection
            connection.sock.settimeout(_left(until))
            connection.response_class = partial(_Reply, until=until)  # type: ignore[assignment]
            _send(connection, request, body)
            reply = connection.getresponse()
            content = reply.read()
        except BaseException as error:
            lane.connection.close()
            raise _translated(error, request) from error
        finally:
            self._busy.discard(lane)
        self._put_back(lane, closing=reply.will_close)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.getheaders()]
        return httpx2.Response(reply.status, headers=headers, stream=httpx2.ByteStream(content))

    def _fresh_lane(self) -> _Lane | None:
        while True:
            try:
                lane = self._idle.pop()
            except IndexError:
                return None
            if lane.fresh:
                return lane
            lane.connection.close()

    def _connected(self, request: httpx2.Request, timeout: float | None) -> _Lane:
        host, port = request.url.host, request.url.port
        connection: http.client.HTTPConnection
        if self._context is not None:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            connection.connect()
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error), request=request) from error
        except (OSError, UnicodeError) as error:
            connection.close()
            raise httpx2.ConnectError(str(error), request=request) from error
        return _Lane(connection)

    def _put_back(self, lane: _Lane, *, closing: bool) -> None:
        if closing or self._closed:
            lane.connection.close()
            return
        lane.used = time.monotonic()
        self._idle.append(lane)
        if len(self._idle) > self._keep:
            self._idle.popleft().connection.close()


def _left(until: float) -> float:
    """Return the seconds until a moment of the monotonic clock; raises ``TimeoutError`` after it."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for the whole attempt is over")
    return left


def _send(connection: http.client.HTTPConnection, request: httpx2.Request, body: bytes) -> None:
    target = request.url.raw_path.decode("ascii")
    connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in request.headers.raw:
        connection.putheader(name, value)
    connection.endheaders(body or None)


def _translated(error: BaseException, request: httpx2.Request) -> BaseException:
    if isinstance(error, TimeoutError):
        return httpx2.ReadTimeout(str(error), request=request)
    if isinstance(error, ValueError):  # a header or path that HTTP cannot carry
        return httpx2.LocalProtocolError(str(error), request=request)
    if isinstance(error, OSError | http.client.HTTPException):
        return httpx2.ReadError(str(error) or type(error).__name__, request=request)
    return error


def _readable(sock: socket.socket) -> bool:
    """Whether an idle connection has something to say, which can only be that it ended."""
    poll = getattr(select, "poll", None)
    if poll is None:  # not on every system; then the request finds out, and is tried again
        return False
    poller = poll()
    poller.register(sock, select.POLLIN)
    return bool(poller.poll(0))


@dataclass(frozen=True)
class Connector:
    """A client of the HTTP library, what a thread holds while it uses it, and what cuts requests off."""

    client: httpx2.Client
    turn: AbstractContextManager[object]
    abort: Callable[[float], None]


def connector(base_url: str, *, timeout: float, connect: float, keep: int) -> Connector:
    """Connect to one endpoint: by a ``Wire``, or where a proxy is set by the library's own transport.

    Redirects are not followed: the key must not travel to another address. ``timeout`` and ``connect`` are seconds; a
    ``Wire`` limits the whole attempt by ``timeout``, the library's transport each read of it.
    """
    encrypted = base_url.startswith("https:")
    timeouts = httpx2.Timeout(timeout, connect=min(connect, timeout))
    if _is_proxied(base_url):
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=keep, keepalive_expiry=_KEEPALIVE_S)
        client = httpx2.Client(timeout=timeouts, verify=encrypted, limits=limits)
        return Connector(client, nullcontext(), lambda grace: None)  # noqa: ARG005 - these end with the process
    turn = threading.Lock()
    wire = Wire(keep=keep, context=httpx2.create_ssl_context() if encrypted else None, turn=turn)
    return Connector(httpx2.Client(timeout=timeouts, transport=wire), turn, wire.abort)


def _is_proxied(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    proxies = urllib.request.getproxies()
    return bool(proxies.keys() & {parts.scheme, "all"}) and not urllib.request.proxy_bypass(parts.hostname or "")
