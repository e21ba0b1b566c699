"""Reads one HTTP reply from a socket; ours, because ``http.client`` takes any size and ambiguous lengths.

It also parses headers like an e-mail, which takes 30 µs a call.
"""

from __future__ import annotations

import re
import socket
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException

LARGEST = 64 << 20
"""Most bytes of a reply, also after decompression. Vectors of 128 texts, the largest that are asked for, take 20 MB."""
_LONGEST_HEAD, _MOST_HEADERS, _LONGEST_LINE, _PIECE = 1 << 16, 100, 1 << 12, 1 << 16
_MOST_INTERIM = 10
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?", re.DOTALL)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)", re.DOTALL)
_LENGTH, _CHUNK_SIZE = re.compile(r"[0-9]{1,18}"), re.compile(r"([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_ANY_ENCODING = 32 + zlib.MAX_WBITS
"""Lets zlib find out whether a reply is in gzip or in zlib format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A whole response. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Incoming:
    """The bytes that arrive at a socket until ``deadline``, a time of the monotonic clock.

    Each look at the socket waits only for the time that is left, so a server that sends a byte now and then cannot hold
    a call.
    """

    def __init__(self, sock: socket.socket, deadline: float):
        self._sock = sock
        self._deadline = deadline
        self._buffer = bytearray()
        self._received = 0

    @property
    def has_more(self) -> bool:
        """Whether bytes have arrived that nobody has taken."""
        return bool(self._buffer)

    def take_head(self) -> list[str]:
        """Take the lines up to the first empty one."""
        while (end := _END_OF_HEAD.search(self._buffer)) is None:
            if len(self._buffer) > _LONGEST_HEAD or not self._receive():
                raise HTTPException("the reply ended, or is too long, in its headers")
        head = self._buffer[: end.start()].decode("latin-1")
        del self._buffer[: end.end()]
        return head.replace("\r\n", "\n").split("\n")

    def take_line(self) -> str:
        """Take a line, without its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LONGEST_LINE or not self._receive():
                raise HTTPException("the reply ended, or is too long, between its chunks")
        line = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 1]
        return line.removesuffix("\r")

    def take(self, size: int) -> bytes:
        """Take ``size`` bytes."""
        while len(self._buffer) < size:
            if not self._receive():
                raise HTTPException(f"the reply ended after {len(self._buffer)} of {size} bytes")
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        return content

    def take_rest(self) -> bytes:
        """Take all bytes until the server closes the connection."""
        while self._receive():
            pass
        return self.take(len(self._buffer))

    def _receive(self) -> int:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._sock.settimeout(remaining)
        piece = self._sock.recv(_PIECE)
        self._buffer += piece
        self._received += len(piece)
        check_size(self._received)
        return len(piece)


def read_reply(incoming: Incoming) -> tuple[Response, bool]:
    """Read a reply to its end. The second value says whether another request may use the connection.

    Raises ``OSError``, ``HTTPException`` or ``zlib.error`` if the bytes are not one whole reply.
    """
    for _ in range(_MOST_INTERIM):  # a server may say first that it goes on
        first, *lines = incoming.take_head()
        status_line = _STATUS.fullmatch(first)
        if status_line is None:
            raise HTTPException(f"the reply begins with {first[:40]!r}")
        status, headers = int(status_line[2]), _read_headers(lines)
        if status >= 200:
            break
    else:
        raise HTTPException("the reply does not get beyond interim statuses")
    content, is_delimited = _read_content(incoming, status, headers)
    keeps_open = status_line[1] == "1" and "close" not in headers.get("connection", "").lower()
    response = Response(status=status, headers=headers, content=_decompress(content, headers))
    return response, keeps_open and is_delimited and not incoming.has_more


def _read_content(incoming: Incoming, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
    """Return the bytes of the content, and whether the reply says beyond doubt where it ends."""
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked":
            raise HTTPException(f"the reply comes as {coding[:40]!r}, which is not read")
        return _read_chunks(incoming), length is None
    if status in (204, 304):
        return b"", True
    if length is None:
        return incoming.take_rest(), False
    if not _LENGTH.fullmatch(length):
        raise HTTPException(f"{length[:40]!r} is not a length")
    check_size(int(length))
    return incoming.take(int(length)), True


def _read_headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > _MOST_HEADERS:
        raise HTTPException(f"the reply has more than {_MOST_HEADERS} headers")
    headers: dict[str, str] = {}
    for line in lines:
        if (parts := _HEADER.fullmatch(line)) is None:
            raise HTTPException(f"{line[:40]!r} is not a header")
        name, value = parts[1].lower(), parts[2].strip()
        if name in ("content-length", "transfer-encoding") and headers.get(name, value) != value:
            raise HTTPException(f"the reply names two values of {name}")
        headers[name] = value
    return headers


def _read_chunks(incoming: Incoming) -> bytes:
    content = bytearray()
    while True:
        line = incoming.take_line()
        if (parts := _CHUNK_SIZE.fullmatch(line)) is None:
            raise HTTPException(f"{line[:40]!r} is not the size of a chunk")
        size = int(parts[1], 16)
        if size == 0:
            break
        check_size(len(content) + size)
        content += incoming.take(size)
        if incoming.take_line():
            raise HTTPException("a chunk is longer than its size")
    for _ in range(_MOST_HEADERS):
        if not incoming.take_line():  # what comes before are trailers
            return bytes(content)
    raise HTTPException(f"the reply has more than {_MOST_HEADERS} trailers")


def _decompress(content: bytes, headers: Mapping[str, str]) -> bytes:
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding == "identity" or not content:
        return content
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise HTTPException(f"the reply is encoded as {encoding[:40]!r}, which was not asked for")
    decoder = zlib.decompressobj(_ANY_ENCODING)
    plain = decoder.decompress(content, LARGEST + 1)
    check_size(len(plain))
    if not decoder.eof:
        raise HTTPException("the reply's compressed content is cut off")
    return plain


def check_size(size: int) -> None:
    """Raise ``HTTPException`` if a reply is larger than any that is asked for."""
    if size > LARGEST:
        raise HTTPException(f"the reply is larger than {LARGEST >> 20} MiB")
