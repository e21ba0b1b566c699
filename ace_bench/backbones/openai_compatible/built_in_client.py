"""The built-in client: takes a third of the stock client's CPU time for a call.

``http.client`` connects; the constant part of the requests is encoded once, and a short one is sent in one piece.
Replies are read here: ``http.client`` parses their headers like an e-mail, which takes 30 µs a call.
"""

from __future__ import annotations

import base64
import http.client
import re
import select
import socket
import ssl
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException
from io import BufferedReader

from ace_bench.backbones.openai_compatible import connections
from ace_bench.backbones.openai_compatible.connections import CONNECT_S, Connection, Response, TransportError

_LARGE = 1 << 16
"""Bytes of a body that is sent as it is: to copy it costs more than another call of the system."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\r\n\0]*")
_PATH = "/%:@!$&'()*+,;=-._~"
"""Characters of a path that are sent as they are."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """How requests reach a server: its address, the proxy of the environment, the headers of every request.

    Redirects are not followed: the key must not travel to another address.
    """

    base_url: str
    headers: Mapping[str, str]
    timeout: float
    _heads: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @cached_property
    def address(self) -> urllib.parse.SplitResult:
        """The address, in parts."""
        return urllib.parse.urlsplit(self.base_url.rstrip("/"))

    @cached_property
    def proxy(self) -> urllib.parse.SplitResult | None:
        """The proxy that the environment names for the address; raises ``TransportError`` for other than HTTP's."""
        proxies = urllib.request.getproxies()
        found = proxies.get(self.address.scheme) or proxies.get("all")
        if not found or urllib.request.proxy_bypass(self.address.netloc):
            return None
        proxy = urllib.parse.urlsplit(found if "://" in found else f"http://{found}")
        if proxy.scheme != "http":
            raise TransportError("unreachable", f"the proxy {found} is not an http:// one: set backbone.client=openai")
        return proxy

    @cached_property
    def encryption(self) -> ssl.SSLContext | None:
        """The context that checks certificates, made once because reading them is slow."""
        if self.address.scheme != "https":
            return None
        import httpx2

        return httpx2.create_ssl_context()

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection; raises ``TransportError``."""
        address = self.proxy or self.address
        host, port, limit = address.hostname or "", address.port, min(CONNECT_S, self.timeout)
        if self.encryption is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port or (80 if self.proxy else 443), timeout=limit, context=self.encryption
            )
            if self.proxy is not None:
                connection.set_tunnel(self.address.hostname or "", self.address.port or 443, self._login)
        else:
            connection = http.client.HTTPConnection(host, port or 80, timeout=limit)
        try:
            connection.connect()
        except TimeoutError as error:
            raise TransportError("unreachable", f"no connection within {limit:g} s") from error
        except (OSError, HTTPException, UnicodeError) as error:
            raise TransportError("unreachable", str(error) or type(error).__name__) from error
        connection.sock.settimeout(self.timeout)
        return connection

    def head(self, method: str, path: str) -> bytes:
        """Return the constant part of a request; raises ``ValueError`` for headers that HTTP cannot carry."""
        return self._heads.get((method, path)) or self._heads.setdefault((method, path), self._write(method, path))

    def _write(self, method: str, path: str) -> bytes:
        target, headers = urllib.parse.quote(f"{self.address.path}{path}", safe=_PATH), dict(self.headers)
        netloc = self.address.netloc
        netloc = netloc if netloc.isascii() else netloc.encode("idna").decode()
        if self.proxy is not None and self.encryption is None:
            target = f"http://{netloc}{target}"
            headers = {**self._login, **headers}
        return f"{method} {target} HTTP/1.1\r\n".encode() + encode_headers({"host": netloc, **headers})

    @property
    def _login(self) -> dict[str, str]:
        if self.proxy is None or self.proxy.username is None:
            return {}
        login = urllib.parse.unquote(f"{self.proxy.username}:{self.proxy.password or ''}")
        return {"proxy-authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Return headers as HTTP sends them; raises ``ValueError`` for those that it cannot carry."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    for line in lines:
        if not _HEADER.fullmatch(line):
            raise ValueError(f"the header {line.partition(':')[0]!r} cannot be sent")
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


class BuiltInConnection(Connection):
    """A connection of ``http.client``, opened by the first request."""

    def __init__(self, route: Route):
        self._route = route
        self._open: http.client.HTTPConnection | None = None
        self._used = 0.0

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        """Send a request and read the whole reply; raises ``TransportError``."""
        try:
            body = body or b""
            head = b"%b%bcontent-length: %d\r\n\r\n" % (
                self._route.head(method, path),
                encode_headers(headers),
                len(body),
            )
            return self._exchange([head + body] if len(body) < _LARGE else [head, body])
        except TimeoutError as error:
            raise TransportError("timeout", "no answer in time") from error
        except (OSError, HTTPException, ValueError, zlib.error) as error:
            raise TransportError("dropped", str(error) or type(error).__name__) from error

    def opened(self) -> socket.socket | None:
        """Return the socket that is open."""
        return None if self._open is None else self._open.sock

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _exchange(self, request: Iterable[bytes]) -> Response:
        sock = self._make_ready().sock
        with suppress(ConnectionError):  # the server may have said why before it closed the connection
            for part in request:
                sock.sendall(part)
        with sock.makefile("rb") as file:  # a new one each time: what follows a reply must not answer the next request
            response, ends = read_reply(file)
        if ends and self.was_cut:
            raise OSError("the reply was cut off")
        if ends:
            self.close()
        self._used = time.monotonic()
        return response

    def _make_ready(self) -> http.client.HTTPConnection:
        """Return the open connection, or a new one where the server closed it, or may be about to."""
        kept = self._open
        if kept is not None and time.monotonic() - self._used <= connections.KEEPALIVE_S and not _has_ended(kept.sock):
            return kept
        self.close()
        self._open = self._route.connect()
        return self._open


def _has_ended(sock: socket.socket) -> bool:
    """Whether there is something to read before anything was asked: the end of the connection, or a wrong byte."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?: .*)?", re.DOTALL)
_LONGEST_LINE, _MOST_LINES, _PIECE = 1 << 16, 100, 1 << 20
_ANY_ENCODING = 32 + zlib.MAX_WBITS
"""Lets zlib find out whether a reply is in gzip or in zlib format."""


def read_reply(file: BufferedReader) -> tuple[Response, bool]:
    """Read a reply to the end; also return whether the connection ends with it.

    Raises ``OSError``, ``HTTPException``, ``ValueError`` or ``zlib.error`` for what is no reply, or none that is whole.
    """
    status = 100
    while status < 200:  # a server may say first that it goes on
        line = _read_line(file)
        found = _STATUS.fullmatch(line)
        if found is None:
            raise HTTPException(f"the reply begins with {line[:40]!r}")
        status, headers = int(found[1]), _read_headers(file)
    ends = "close" in headers.get("connection", "").lower() or line.startswith(b"HTTP/1.0")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        content = _read_chunks(file)
    elif status in (204, 304):
        content = b""
    elif "content-length" in headers:
        content = _read_exactly(file, _size(headers["content-length"], 10))
    else:
        content, ends = file.read(), True
    if headers.get("content-encoding", "identity") != "identity":
        content = zlib.decompress(content, _ANY_ENCODING)
    return Response(status=status, headers=headers, content=content), ends


def _read_headers(file: BufferedReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MOST_LINES):
        line = _read_line(file).decode("latin-1")
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise HTTPException(f"the reply has more than {_MOST_LINES} headers")


def _read_chunks(file: BufferedReader) -> bytes:
    chunks = []
    while size := _size(_read_line(file).partition(b";")[0].decode("latin-1"), 16):
        chunks.append(_read_exactly(file, size))
        _read_line(file)
    _read_headers(file)  # trailers
    return b"".join(chunks)


def _size(digits: str, base: int) -> int:
    if not digits.strip().isalnum():  # int() takes signs
        raise HTTPException(f"{digits[:40]!r} is no size")
    return int(digits, base)


def _read_line(file: BufferedReader) -> bytes:
    line = file.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise HTTPException("the reply ended, or is too long, in its headers")
    return line.rstrip(b"\r\n")


def _read_exactly(file: BufferedReader, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = file.read(min(left, _PIECE))  # room is made for all that is asked for
        if not part:
            raise HTTPException(f"the reply ended after {size - left} of {size} bytes")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
