"""Append-only JSON Lines files that survive a kill at any byte."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.errors import StoreError
from ace_bench.core.types import Record

_log = logging.getLogger(__name__)


class AppendLog:
    """One JSON object a line. A line counts once it ends in a newline; a torn tail is cut off on opening.

    Each ``append`` is handed to the operating system at once, so that a killed process loses nothing it wrote;
    ``sync`` makes it safe against a power failure and is called at step boundaries.
    """

    def __init__(self, path: Path):
        """Open or create ``path``; ``records`` holds what it contains."""
        self.path = path
        self.records, self._ends = read_lines(path)
        size = path.stat().st_size if path.exists() else 0
        self._file = path.open("ab", buffering=0)
        torn = size - self._cut()
        if torn:
            _log.warning("%s ended in %d bytes of a line that was never finished; they were cut off", path, torn)
        self._lock = threading.Lock()
        self._encoder = msgspec.json.Encoder()

    def append(self, record: Record) -> None:
        """Add one record; safe to call from several threads."""
        line = self._encoder.encode(record) + b"\n"
        with self._lock:
            written = self._file.write(line)
            while written < len(line):
                written += self._file.write(line[written:])

    def keep(self, count: int) -> None:
        """Cut off all but the first ``count`` of the records that were there on opening; before any ``append``."""
        del self.records[count:], self._ends[count:]
        self._cut()

    def _cut(self) -> int:
        end = self._ends[-1] if self._ends else 0
        self._file.truncate(end)
        return end

    def sync(self) -> None:
        """Flush to the disk itself."""
        with self._lock:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()


def read_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Read the records of a file and where each ends in bytes; a torn or damaged last line is left out.

    Raises ``StoreError`` where a line before the last one is damaged: that is no accident of a kill.
    """
    if not path.exists():
        return [], []
    decoder = msgspec.json.Decoder(dict[str, Any])
    data = path.read_bytes()
    lines = data.split(b"\n")
    lines.pop()  # what follows the last newline is empty or torn
    records: list[dict[str, Any]] = []
    ends: list[int] = []
    good = 0
    for number, line in enumerate(lines, start=1):
        try:
            records.append(decoder.decode(line))
        except msgspec.MsgspecError as error:
            if number == len(lines):
                break
            raise StoreError(
                f"{path}, line {number} is damaged ({error}); restore the file, or start anew with resume=false"
            ) from error
        good += len(line) + 1
        ends.append(good)
    return records, ends
