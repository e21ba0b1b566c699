"""Hides what libraries print, log and draw, but not the run's console."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from typing import Any, TextIO

_SILENCED: ContextVar[bool] = ContextVar("silenced", default=False)


class _MutedStream:
    """A stream that drops what silenced code writes and passes on what other threads write, such as the console."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if _SILENCED.get() else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what this context and those copied from it write to the standard streams."""
    token = _SILENCED.set(True)
    try:
        with redirect_stdout(_MutedStream(sys.stdout)), redirect_stderr(_MutedStream(sys.stderr)):
            yield
    finally:
        _SILENCED.reset(token)
