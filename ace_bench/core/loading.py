"""What a program does while it loads: it reads ``.env``, and Ctrl-C or SIGTERM is one sentence, not a traceback."""

from __future__ import annotations

import os
import signal
from pathlib import Path
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


def read_env_file() -> None:
    """Read ``.env`` of the current folder; variables that are already set keep their values."""
    if Path(".env").is_file():
        from dotenv import load_dotenv

        load_dotenv(".env")
