"""Files of JSON lines with checksums that survive kills and full disks; ours, because logs of libraries are binary.

A line is a JSON object that ends in its number, counted from 1, and its checksum::

    {"id":"...","text":"...","line":17,"crc32":"0a1b2c3d"}

``crc32`` is zlib's over all bytes of the line before ``,"crc32"``. Numbers reveal missing, repeated and reordered
lines. Files of older versions have neither; they are read unchecked until a run continues them.
Any JSON tool reads these files.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ace_bench.core.errors import FolderUnwritable, StoreError
from ace_bench.core.types import Record
from ace_bench.store.files import disk_problem, replace_files, sync

T = TypeVar("T")

SEAL = ("line", "crc32")
"""The fields at the end of each line that are not content."""

DAMAGED = ".damaged"
"""Suffix of the file with the damaged lines removed from another file, unchanged."""
_SYNC_EVERY_S = 1.0
_log = logging.getLogger(__name__)

_SHOWN = 3
_SEALED = re.compile(rb',"line":(\d+),"crc32":"([0-9a-f]{8})"\}$')
_MAX_SEAL, _CHECKSUM = 60, len(b',"crc32":"00000000"}')


@dataclass(frozen=True, kw_only=True)
class Lines(Generic[T]):
    """The contents of a file: ``entries`` in the order of their numbers, and the ``lines`` they were parsed from.

    ``problems`` describes what is wrong, ``damaged`` are the lines left out, ``lost`` the missing numbers. ``count`` is
    the number of lines that the file held before the damage, as far as it shows. ``whole`` counts the bytes up to the
    end of the last complete line. ``sealed`` is false for a file without checksums.
    """

    path: Path
    entries: list[T] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    problems: Sequence[str] = ()
    damaged: Sequence[bytes] = ()
    lost: Sequence[int] = ()
    count: int = 0
    whole: int = 0
    sealed: bool = True

    @property
    def summary(self) -> str:
        """What is wrong with the file, in one line."""
        hidden = len(self.problems) - _SHOWN
        return f"{self.path}: {', '.join(self.problems[:_SHOWN])}" + (f" and {hidden} more" if hidden > 0 else "")

    def check(self) -> Lines[T]:
        """Return itself; raises ``StoreError`` if anything is wrong, since sums over the lines would be wrong."""
        if self.problems:
            raise StoreError(f"{self.summary}; restore the file, or repeat the run")
        return self


def read_lines(path: Path, parse: Callable[[bytes], T]) -> Lines[T]:
    """Read a file; a missing file is empty. ``parse`` raises ``ValueError`` for a line of the wrong shape.

    An unfinished last line is ignored. Raises ``StoreError`` if the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Lines(path=path)
    except OSError as error:
        raise StoreError.unreadable(path, error) from error
    complete_bytes = data.rfind(b"\n") + 1
    lines = data[:complete_bytes].split(b"\n")[:-1]
    entries = _parse_intact(lines, parse)
    if entries is None:
        return _read_damaged(path, lines, parse, complete_bytes)
    return Lines(path=path, entries=entries, lines=lines, count=len(lines), whole=complete_bytes)


def _parse_intact(lines: list[bytes], parse: Callable[[bytes], T]) -> list[T] | None:
    """Parse lines that are complete, in order and undamaged, as in almost every file; ``None`` if they are not."""
    parsed = []
    try:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(_seal(line[:-_CHECKSUM])) or not line.endswith(b',"line":%d' % number, 0, -_CHECKSUM):
                return None
            parsed.append(parse(line))
    except (ValueError, RecursionError):
        return None
    return parsed


def _seal_line(text: bytes, number: int) -> bytes:
    head = b'%b,"line":%d' % (text[:-1], number)
    return b"%b%b\n" % (head, _seal(head))


def _read_damaged(path: Path, lines: list[bytes], parse: Callable[[bytes], T], complete_bytes: int) -> Lines[T]:
    """Parse the lines that can be read, and collect the damaged ones."""
    numbers = [_number(line) for line in lines]
    sealed = not lines or any(numbers)
    parsed: dict[int, tuple[T, bytes]] = {}
    damaged: list[tuple[bytes, str]] = []
    contents: set[bytes] = set()
    repeated = broken = broken_before_last = 0
    for index, (line, sealed_as) in enumerate(zip(lines, numbers, strict=True), start=1):
        number = sealed_as if sealed else index - repeated
        if number in parsed or (not sealed and line in contents):
            repeated += 1
            damaged.append((line, f"line {index} comes twice"))
            continue
        contents.add(line)
        try:
            if number is None:
                raise ValueError("its checksum does not fit")
            parsed[number] = parse(line), line
            broken_before_last = broken
        except (ValueError, RecursionError) as error:
            broken += 1
            damaged.append((line, f"line {index} is damaged ({error})"))
    last = max(parsed, default=0)
    lost = sorted(set(range(1, last)) - parsed.keys())
    problems = [problem for _, problem in damaged]
    if (missing := len(lost) - broken_before_last) > 0:
        lost_lines = "a line is" if missing == 1 else f"{missing} lines are"
        problems.append(f"{lost_lines} missing (the first gap is at number {lost[0]})")
    return Lines(
        path=path,
        entries=[parsed[number][0] for number in sorted(parsed)],
        lines=[parsed[number][1] for number in sorted(parsed)],
        problems=tuple(problems),
        damaged=[line for line, _ in damaged],
        lost=lost,
        count=last + broken - broken_before_last,
        whole=complete_bytes,
        sealed=sealed,
    )


def _number(line: bytes) -> int | None:
    """Return the number of a line, ``None`` if its checksum does not match."""
    seal = _SEALED.search(line, len(line) - _MAX_SEAL)
    return int(seal[1]) if seal is not None and int(seal[2], 16) == zlib.crc32(line[:-_CHECKSUM]) else None


def _strip_seal(line: bytes) -> bytes:
    seal = _SEALED.search(line, len(line) - _MAX_SEAL)
    return line.strip() if seal is None else line[: seal.start()] + b"}"


def _seal(head: bytes) -> bytes:
    return b',"crc32":"%08x"}' % zlib.crc32(head)


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

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turn an ``OSError`` inside into ``FolderUnwritable``, and block later writes."""
        if self._reason is not None:
            raise FolderUnwritable(self._reason)
        try:
            yield
        except OSError as error:
            problem = disk_problem(error, path, elsewhere="choose another folder with results=")
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
        self.count = len(found.entries)
        """Number of lines."""
        self._size = 0
        self._file: FileIO | None = None

    def repair(self, keep: Collection[int] | None = None) -> None:
        """Repair the file before any ``append``: keep only valid entries, or those with an index in ``keep``.

        Damaged lines are moved to another file. Raises ``FolderUnwritable``.
        """
        found = self.found
        kept = [line for index, line in enumerate(found.lines) if keep is None or index in keep]
        if found.problems:
            kept_in = f"; the damaged lines were moved to {self.path.name}{DAMAGED}" if found.damaged else ""
            _log.warning("%s%s; %s", found.summary, kept_in, self._meaning)
        with self.guard.writing(self.path):
            if found.damaged:
                kept_path = self.path.with_name(self.path.name + DAMAGED)
                with kept_path.open("ab") as file:
                    file.write(b"".join(line + b"\n" for line in found.damaged))
                sync(kept_path)
            if found.problems or len(kept) < len(found.lines) or not found.sealed:
                data = b"".join(_seal_line(_strip_seal(line), number) for number, line in enumerate(kept, start=1))
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
        self.count = len(kept)
        self._repaired = True
        self.found = replace(found, entries=[], lines=[], damaged=())  # they may be large

    def append(self, record: Record) -> None:
        """Add one record; safe to call from several threads. Raises ``FolderUnwritable``."""
        text = self._encoder.encode(record)
        with self._lock, self.guard.writing(self.path):
            file = self._require_open()
            line = _seal_line(text, self.count + 1)
            try:
                written = 0
                while written < len(line):  # a full disk may accept part of a line before it fails
                    written += file.write(line[written:])
            except OSError:
                with suppress(OSError):  # an unfinished line is cut off on the next opening
                    file.truncate(self._size)
                raise
            self.count += 1
            self._size += len(line)
            if time.monotonic() - self._synced > _SYNC_EVERY_S:
                self._sync(file)

    def sync(self) -> None:
        """Sync to disk; raises ``FolderUnwritable``."""
        with self._lock, self.guard.writing(self.path):
            self._sync(self._require_open())

    def close(self) -> None:
        """Close the file without syncing."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _require_open(self) -> FileIO:
        if not self._repaired:
            self.repair()
        if self._file is None:
            raise RuntimeError(f"{self.path} is closed")
        return self._file

    def _sync(self, file: FileIO) -> None:
        os.fsync(file.fileno())
        self._synced = time.monotonic()
