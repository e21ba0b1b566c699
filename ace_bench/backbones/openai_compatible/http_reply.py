"""Reads replies of HTTP/1.1: ``http.client`` reads their headers as those of an e-mail, which takes it 30 µs a call."""

from __future__ import annotations

import re
import zlib
from http.client import HTTPException
from io import BufferedReader

from ace_bench.backbones.openai_compatible.connections import Response

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
