"""Messages over a connected socket: bytes behind their length.

Agent code may run the other end. Memory grows only with what has arrived, up to a limit.
"""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Callable

MAX_MESSAGE = 64 << 20
"""Longest message between the processes of an episode, in bytes."""
MAX_OUTPUT = 20_000
"""Characters of an output that an agent sees, as in the official agents."""
INTERPRETER_KILLED = 128 + signal.SIGKILL
"""Exit status of a world whose interpreter was killed from outside."""

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 16


def send(end: socket.socket, message: bytes | bytearray) -> None:
    """Send a message; raises ``ValueError`` where it is too long, ``OSError`` where the connection breaks."""
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(message)} bytes is longer than {MAX_MESSAGE >> 20} MiB")
    end.sendall(_LENGTH.pack(len(message)) + message)


def receive(read: Callable[[int], bytes], most: int = MAX_MESSAGE) -> bytearray:
    """Read a message of at most ``most`` bytes; ``read`` returns up to the given number of bytes, b"" at the end.

    Raises ``ValueError`` where the message is longer, ``ConnectionError`` where it ends early.
    """
    (length,) = _LENGTH.unpack(_read_exactly(read, _LENGTH.size))
    if length > most:
        raise ValueError(f"a message of {length} bytes was announced, {most} are allowed")
    return _read_exactly(read, length)


def _read_exactly(read: Callable[[int], bytes], count: int) -> bytearray:
    received = bytearray()
    while len(received) < count:
        part = read(min(count - len(received), _CHUNK))
        if not part:
            raise ConnectionError("the other end closed the connection")
        received += part
    return received
