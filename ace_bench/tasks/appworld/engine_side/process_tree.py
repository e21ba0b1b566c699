"""Finding and killing all processes that descend from this one."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_TIMEOUT_S = 10.0


def end_tree(child: int) -> int:
    """Kill a child and all its descendants; return the child's exit code as ``waitstatus_to_exitcode`` gives it.

    Also finds processes that have left their process group and lost their parent, provided that this process adopts
    orphans (see ``adopt_orphans``).
    """
    status = None
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
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
        except (OSError, ValueError):
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    found: list[int] = []
    todo = [ancestor]
    while todo:
        found += (more := children.get(todo.pop(), []))
        todo += more
    return found
