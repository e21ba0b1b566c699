"""Writes JSON Lines files with a checksum per line, to survive kills, full disks and damage.

``lines`` says how a line ends. The framing is ours: logs of libraries are binary, and these files are read with any
JSON tool.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ace_bench.core.errors import FolderUnwritable
from ace_bench.core.types import Record
from ace_bench.store.files import CHECK_DISK, disk_problem, replace_files, sync
from ace_bench.store.lines import Lines, seal_line, unseal

T = TypeVar("T")

DAMAGED = ".damaged"
"""Suffix of the file with the damaged lines removed from another file, unchanged."""

_RESULTS = "choose another folder with results="
_SYNC_EVERY_S = 1.0
_log = logging.getLogger(__name__)


class DiskGuard:
    """Shared by all files of a folder: after the first failed write, no other is attempted."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self.on_failure: Callable[[FolderUnwritable], None] = lambda _: None
        """Called with the first failure, so that a run stops before it pays for replies that cannot be saved."""

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed."""
        return self._reason is not None

    def check(self) -> None:
        """Raise ``FolderUnwritable`` if a write has failed before."""
        if self._reason is not None:
            raise FolderUnwritable(self._reason)

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turn an ``OSError`` inside into ``FolderUnwritable``, and block later writes."""
        self.check()
        try:
            yield
        except OSError as error:
            problem = (
                disk_problem(error, path, elsewhere=_RESULTS) or f"{path} cannot be written ({error}); {CHECK_DISK}"
            )
            self._reason = self._reason or problem  # if several threads fail at once, all report the first reason
            failure = FolderUnwritable(self._reason)
            self.on_failure(failure)
            raise failure from error


class AppendLog(Generic[T]):
    """A file of lines that one process writes.

    Each ``append`` is passed to the operating system at once, so that a killed process loses nothing it wrote. The file
    is synced to disk by the first append more than a second after the last sync. A failed append is cut off and no
    other follows, so the file ends in a complete line.
    """

    def __init__(self, found: Lines[T], *, guard: DiskGuard | None = None, meaning: str = ""):
        """Continue a file that was read. ``meaning`` ends the warning about damaged lines with their consequence."""
        self.path = found.path
        self.found = found
        self.guard = guard or DiskGuard()
        self._meaning = meaning
        self._lock = threading.Lock()
        self._encoder = msgspec.json.Encoder()
        self._synced = time.monotonic()
        self._repaired = False
        self._count = len(self.found.entries)
        self._size = 0
        self._file: FileIO | None = None

    @property
    def count(self) -> int:
        """Number of lines."""
        return self._count

    def repair(self, keep: Collection[int] | None = None) -> None:
        """Repair the file before any ``append``: keep only valid entries, or those with an index in ``keep``.

        Damaged lines are moved to another file. Raises ``FolderUnwritable``.
        """
        found = self.found
        kept = [line for place, line in enumerate(found.lines) if keep is None or place in keep]
        if found.problems:
            kept_in = f"; the damaged lines were moved to {self.path.name}{DAMAGED}" if found.damaged else ""
            _log.warning("%s%s; %s", found.summary, kept_in, self._meaning)
        with self.guard.writing(self.path):
            if found.damaged:
                aside = self.path.with_name(self.path.name + DAMAGED)
                with aside.open("ab") as file:
                    file.write(b"".join(line + b"\n" for line in found.damaged))
                sync(aside)
            if found.problems or len(kept) < len(found.lines) or not found.sealed:
                data = b"".join(seal_line(unseal(line), number) for number, line in enumerate(kept, start=1))
                replace_files({self.path: data})
                self._size = len(data)
            else:
                self._size = found.whole
            unfinished = self.path.stat().st_size - self._size if self.path.exists() else 0
            if unfinished:
                os.truncate(self.path, self._size)
                _log.warning(
                    "%s ended in %d bytes of a line that was never finished; they were cut off", self.path, unfinished
                )
            self._file = self.path.open("ab", buffering=0)
        self._count = len(kept)
        self._repaired = True
        self.found = replace(found, entries=[], lines=[], damaged=())  # they may be large

    def append(self, record: Record) -> None:
        """Add one record; safe to call from several threads. Raises ``FolderUnwritable``."""
        text = self._encoder.encode(record)
        with self._lock, self.guard.writing(self.path):
            file = self._opened()
            line = seal_line(text, self._count + 1)
            try:
                _write(file, line)
            except OSError:
                with suppress(OSError):  # an unfinished line is cut off on the next opening
                    file.truncate(self._size)
                raise
            self._count += 1
            self._size += len(line)
            if time.monotonic() - self._synced > _SYNC_EVERY_S:
                self._sync(file)

    def sync(self) -> None:
        """Sync to disk; raises ``FolderUnwritable``."""
        with self._lock, self.guard.writing(self.path):
            self._sync(self._opened())

    def close(self) -> None:
        """Close the file without syncing."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _opened(self) -> FileIO:
        if not self._repaired:
            self.repair()
        if self._file is None:
            raise RuntimeError(f"{self.path} is closed")
        return self._file

    def _sync(self, file: FileIO) -> None:
        os.fsync(file.fileno())
        self._synced = time.monotonic()


def _write(file: FileIO, line: bytes) -> None:
    written = 0
    while written < len(line):  # a full disk may accept part of a line before it fails
        written += file.write(line[written:])
