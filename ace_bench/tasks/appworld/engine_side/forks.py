"""What a forked process does first and last."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


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
