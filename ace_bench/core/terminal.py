"""Shows on a terminal what others wrote, so that it can command nothing; ours, because rich lets escapes through.

Others write names, notes, replies and errors of servers. Everything that is printed passes here: plain output by
``write``, the log by ``LogFormatter``, and all else by the ``Console`` of ``core.console``.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import TextIO

COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Escapes and other control characters, marks that turn the direction of a line, and halves of characters."""


def shown(text: str) -> str:
    """Return a text for a terminal. Characters that would control it become escapes, such as ``\\x1b``."""
    return COMMANDS.sub(_write_escape, text.replace("\r\n", "\n"))


def _write_escape(mark: re.Match[str]) -> str:
    return mark[0].encode("unicode_escape").decode("ascii")


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a text to the standard output, or another stream of the terminal."""
    (stream or sys.stdout).write(shown(text))


class LogFormatter(logging.Formatter):
    """Formats lines of the log for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, and below it perhaps a traceback."""
        return shown(super().format(record))


def log_to_stdout() -> None:
    """Print the lines of the log as they are, without time and level."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LogFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
