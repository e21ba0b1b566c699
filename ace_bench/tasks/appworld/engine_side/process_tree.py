"""Forked processes: what they do first and last, and how all that descend from this process are found and killed."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


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
