"""A Ctrl-C or SIGTERM while a program still loads, which may take a second: one sentence and no traceback."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = "Interrupted; the same command starts or continues what is left.\n"


def leave_at_signals() -> None:
    """End the process at SIGINT and SIGTERM, until other handlers take over: it has nothing to put away yet."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    os.write(2, INTERRUPTED.encode())
    os._exit(128 + number)
