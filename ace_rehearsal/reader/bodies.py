"""Reading the body of an HTTP request from a client that may be wrong about its length."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from email.message import Message
from io import BufferedIOBase

from ace_rehearsal.reader.chat import BadRequest

LARGEST_BODY = 64 * 1024 * 1024
_PIECE = 1 << 16
_DRAIN_S = 2.0


def body_length(headers: Message) -> int:
    """Return the length that the headers promise; raises ``BadRequest`` (400, 411, 413) as HTTP defines them."""
    lengths = headers.get_all("Content-Length", [])
    if headers.get("Transfer-Encoding") is not None:
        if lengths:
            raise BadRequest(400, "bad_length", "Send either Content-Length or Transfer-Encoding, not both.")
        raise BadRequest(411, "length_required", "Chunked bodies are not read; send Content-Length.")
    if not lengths:
        raise BadRequest(411, "length_required", "Content-Length is missing.")
    length = lengths[0].strip()
    if len(lengths) > 1 or not (length.isascii() and length.isdigit()):
        raise BadRequest(
            400, "bad_length", f"Content-Length must be one whole number, found {', '.join(lengths)[:80]}."
        )
    digits = length.lstrip("0") or "0"
    if len(digits) > len(str(LARGEST_BODY)) or int(digits) > LARGEST_BODY:  # int() refuses thousands of digits
        raise BadRequest(413, "too_large", f"The body is larger than {LARGEST_BODY} bytes.")
    return int(digits)


def read_body(connection: socket.socket, stream: BufferedIOBase, length: int, *, seconds: float) -> bytes:
    """Read ``length`` bytes within ``seconds``; raises ``BadRequest`` (400, 408) where they do not come."""
    until, before = time.monotonic() + seconds, connection.gettimeout()
    pieces: list[bytes] = []
    missing = length
    try:
        while missing:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            piece = stream.read1(min(missing, _PIECE))
            if not piece:
                raise BadRequest(400, "short_body", f"The body ended {missing} bytes before its Content-Length.")
            pieces.append(piece)
            missing -= len(piece)
    except TimeoutError as error:
        raise BadRequest(408, "body_timeout", f"The body did not arrive within {seconds:g} s.") from error
    finally:
        connection.settimeout(before)
    return b"".join(pieces)


def close_after_reply(connection: socket.socket) -> None:
    """End a connection with an unread body; the rest is read and dropped, or the client would lose the reply."""
    until = time.monotonic() + _DRAIN_S
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(_PIECE):
                return
