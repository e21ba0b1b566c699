"""A small process that starts a server and ends it when the harness ends.

    python supervisor.py GRACE_S COMMAND...

It runs the command in a session of its own and ends it, with everything the command started, when its standard input
closes, when its parent is gone, or on SIGTERM: SIGTERM first, SIGKILL after ``GRACE_S`` seconds. ``kill -9`` of the
harness also closes the pipe. If the supervisor itself is killed, the kernel sends the server SIGTERM. What the command
prints goes to standard error. The command's exit status goes to standard output as soon as it has ended, before its
children are ended. Only the standard library is used, because this file runs without the package.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_POLL_S = 0.1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LINUX = sys.platform == "linux"


def main(arguments: Sequence[str]) -> int:
    """Run the command until it ends or must end; return 0."""
    grace_s, command = float(arguments[0]), list(arguments[1:])
    parent = os.getppid()
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: signals.append(got))
    # Processes that leave the server's session and lose their parent become children of the supervisor.
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        start_new_session=True,
        preexec_fn=_end_with_supervisor,  # noqa: PLW1509 - safe: this process has one thread
    )
    while server.poll() is None and not signals and os.getppid() == parent and not _is_closed(sys.stdin.fileno()):
        pass
    if server.returncode is not None:
        # Even if the harness is gone, end the server's children.
        with contextlib.suppress(BrokenPipeError):
            os.write(sys.stdout.fileno(), f"{server.returncode}\n".encode())
    _end(server, grace_s)
    return 0


def _is_closed(descriptor: int) -> bool:
    """Wait a moment; return whether every writer has closed the pipe."""
    ready, _, _ = select.select([descriptor], [], [], _POLL_S)
    return bool(ready) and os.read(descriptor, 1024) == b""


def _end(server: subprocess.Popen[bytes], grace_s: float) -> None:
    """Send SIGTERM, then SIGKILL, to the server and its descendants; a server that died may have left some."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, grace_s)):
        _signal_all(server.pid, number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and (server.poll() is None or _descendants(server.pid)):
            time.sleep(_POLL_S / 2)
    server.wait()


def _signal_all(group: int, number: int) -> None:
    if number == signal.SIGTERM and _alive(group):
        # The server ends its own children in order; it would report errors if they were signalled at the same time.
        _send(os.kill, group, number)
        return
    _send(os.killpg, group, number)
    for member in _descendants(group):
        _send(os.kill, member, number)


def _alive(process: int) -> bool:
    return _send(os.kill, process, 0)


def _send(kill: Callable[[int, int], None], target: int, number: int) -> bool:
    """Signal a process or group that may be gone; return whether it existed."""
    try:
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _descendants(group: int) -> list[int]:
    """Living processes of the server's group and session, and all descendants of the supervisor."""
    parents: dict[int, int] = {}
    members: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold spaces and brackets itself; what follows it never does.
            state, parent, its_group, session = entry.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        process = int(entry.parent.name)
        if state == "Z":
            continue
        parents[process] = int(parent)
        if group in (int(its_group), int(session)):
            members.add(process)
    supervisor = os.getpid()
    for process, parent_ in parents.items():
        ancestor = parent_
        while ancestor > 1 and ancestor != supervisor:
            ancestor = parents.get(ancestor, 0)
        if ancestor == supervisor:
            members.add(process)
    return sorted(members - {supervisor})


def _end_with_supervisor() -> None:
    _control_process(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _control_process(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
