"""Forked processes, and messages between them: bytes behind their length over a connected socket.

Agent code may run the other end of a connection. Memory grows only with what has arrived, up to a limit.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_MESSAGE = 64 << 20
"""Longest message between the processes of an episode, in bytes."""
CHUNK = 1 << 16
"""Most bytes that are read or written at a time."""
MAX_OUTPUT = 20_000
"""Characters of an output that an agent sees, as in the official agents."""
INTERPRETER_KILLED = 128 + signal.SIGKILL
"""Exit status of a world whose interpreter was killed from outside."""

_LENGTH = struct.Struct("!I")


def send(end: socket.socket, message: bytes | bytearray) -> None:
    """Send a message; raises ``ValueError`` if it is too long, ``OSError`` where the connection breaks."""
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(message)} bytes is longer than {MAX_MESSAGE >> 20} MiB")
    end.sendall(_LENGTH.pack(len(message)) + message)


def receive(read: Callable[[int], bytes], most: int = MAX_MESSAGE) -> bytearray:
    """Read a message of at most ``most`` bytes; ``read`` returns up to the given number of bytes, b"" at the end.

    Raises ``ValueError`` if the message is longer, ``ConnectionError`` where it ends early.
    """
    (length,) = _LENGTH.unpack(_read_exactly(read, _LENGTH.size))
    if length > most:
        raise ValueError(f"a message of {length} bytes was announced, {most} are allowed")
    return _read_exactly(read, length)


def _read_exactly(read: Callable[[int], bytes], count: int) -> bytearray:
    received = bytearray()
    while len(received) < count:
        part = read(min(count - len(received), CHUNK))
        if not part:
            raise ConnectionError("the other end closed the connection")
        received += part
    return received


def run_in_fork(work: Callable[[], None]) -> None:
    """Do the work of a forked process and exit: never return into the copy of the parent's stack."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def close_all_but(*kept: int) -> None:
    """Close all descriptors but ``kept`` and the standard ones, which read and write nothing from now on."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


_TIMEOUT_S = 10.0


def end_tree(child: int) -> int:
    """Kill a child and all its descendants; return the child's exit code as ``waitstatus_to_exitcode`` gives it.

    Also finds processes that have left their process group and lost their parent, provided that this process adopts
    orphans (see ``adopt_orphans``).
    """
    status = None
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        for target in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(target, signal.SIGKILL)
        try:
            ended, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if ended == child:
            status = how
        if not ended:
            time.sleep(0.002)
    return 0 if status is None else os.waitstatus_to_exitcode(status)


def descendants(ancestor: int) -> list[int]:
    """Return the ids of all living descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold spaces and brackets itself; what follows it never does.
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    pids: list[int] = []
    todo = [ancestor]
    while todo:
        below = children.get(todo.pop(), [])
        pids += below
        todo += below
    return pids
