"""Handles Ctrl-C and SIGTERM while a program is still loading: one sentence and no traceback."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = "Interrupted; the same command starts or continues what is left.\n"


def exit_on_signals() -> None:
    """End the process on SIGINT and SIGTERM until other handlers replace these: nothing needs cleaning up yet."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    os.write(2, INTERRUPTED.encode())
    os._exit(128 + number)
