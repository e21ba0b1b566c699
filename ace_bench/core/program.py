"""The program that the user started: its work while it loads, and the command lines in messages.

It reads ``.env``. Ctrl-C or SIGTERM prints one sentence and no traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

SCRIPTS: Mapping[str, str] = {
    "run": "run.py",
    "data": "scripts/download_data.py",
}
"""The script of a checkout that starts each command."""


def command_line(command: str) -> str:
    """Return ``ace-bench COMMAND``, or ``python SCRIPT`` if this process was started by a script of a checkout."""
    started = Path(sys.argv[0]).name
    if command in SCRIPTS and any(started == Path(script).name for script in SCRIPTS.values()):
        return f"python {SCRIPTS[command]}"
    return f"ace-bench {command}"


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
