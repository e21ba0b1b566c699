"""Lines with checksums, of which ``append_log`` writes files; reads these and finds what is damaged in them.

A line is a JSON object that ends in its number, counted from 1, and its checksum::

    {"id":"...","text":"...","line":17,"crc32":"0a1b2c3d"}

``crc32`` is zlib's over all bytes of the line before ``,"crc32"``. Numbers reveal missing, repeated and reordered
lines.

Files of older versions have neither numbers nor checksums; they are read unchecked until a run
continues them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ace_bench.core.errors import StoreError

T = TypeVar("T")

SEAL = ("line", "crc32")
"""The fields at the end of each line that are not content."""

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
    problems: tuple[str, ...] = ()
    damaged: tuple[bytes, ...] = ()
    lost: tuple[int, ...] = ()
    count: int = 0
    whole: int = 0
    sealed: bool = True

    @property
    def summary(self) -> str:
        """What is wrong with the file, in one line."""
        more = len(self.problems) - _SHOWN
        return f"{self.path}: {', '.join(self.problems[:_SHOWN])}" + (f" and {more} more" if more > 0 else "")

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
        raise StoreError(f"{path} cannot be read ({error.strerror}); make it readable, or restore it") from error
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].split(b"\n")[:-1]
    entries = _parse_intact(lines, parse)
    if entries is not None:
        return Lines(path=path, entries=entries, lines=lines, count=len(lines), whole=whole)
    reading = _Reading(lines, parse)
    return Lines(
        path=path,
        entries=[reading.found[number][0] for number in sorted(reading.found)],
        lines=[reading.found[number][1] for number in sorted(reading.found)],
        problems=tuple(reading.problems),
        damaged=tuple(reading.damaged),
        lost=reading.lost,
        count=reading.count,
        whole=whole,
        sealed=reading.sealed,
    )


def _parse_intact(lines: list[bytes], parse: Callable[[bytes], T]) -> list[T] | None:
    """Parse lines that are complete, in order and undamaged, as in almost every file; ``None`` if they are not."""
    found = []
    try:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(_seal(line[:-_CHECKSUM])) or not line.endswith(b',"line":%d' % number, 0, -_CHECKSUM):
                return None
            found.append(parse(line))
    except (ValueError, RecursionError):
        return None
    return found


def seal_line(text: bytes, number: int) -> bytes:
    """Return a JSON object as a line with its number and checksum."""
    head = b'%b,"line":%d' % (text[:-1], number)
    return b"%b%b\n" % (head, _seal(head))


def unseal(line: bytes) -> bytes:
    """Return the JSON object of a line without number and checksum."""
    seal = _SEALED.search(line, max(0, len(line) - _MAX_SEAL))
    return line.strip() if seal is None else line[: seal.start()] + b"}"


def is_line_of(line: bytes, text: bytes) -> bool:
    """Whether a line holds a JSON object, followed by its number and a valid checksum."""
    return line.startswith(text[:-1] + b',"line":') and _number(line) is not None


class _Reading(Generic[T]):
    """Parses the lines of a file and collects the damaged ones."""

    def __init__(self, lines: list[bytes], parse: Callable[[bytes], T]):
        numbers = [_number(line) for line in lines]
        self.sealed = not lines or any(numbers)
        self.found: dict[int, tuple[T, bytes]] = {}
        self.problems: list[str] = []
        self.damaged: list[bytes] = []
        twice, broken_before_last = 0, 0
        seen: set[bytes] = set()
        broken = 0
        for place, (line, sealed_as) in enumerate(zip(lines, numbers, strict=True), start=1):
            number = sealed_as if self.sealed else place - twice
            if number in self.found or (not self.sealed and line in seen):
                twice += 1
                self._leave_out(line, f"line {place} comes twice")
                continue
            seen.add(line)
            try:
                if number is None:
                    raise ValueError("its checksum does not fit")
                self.found[number] = parse(line), line
                broken_before_last = broken
            except (ValueError, RecursionError) as error:
                broken += 1
                self._leave_out(line, f"line {place} is damaged ({error})")
        self.lost = tuple(sorted(set(range(1, max(self.found, default=0))) - self.found.keys()))
        self.count = max(self.found, default=0) + broken - broken_before_last
        missing = len(self.lost) - broken_before_last
        if missing > 0:
            what = "a line is" if missing == 1 else f"{missing} lines are"
            self.problems.append(f"{what} missing (the first gap is at number {self.lost[0]})")

    def _leave_out(self, line: bytes, problem: str) -> None:
        self.damaged.append(line)
        self.problems.append(problem)


def _number(line: bytes) -> int | None:
    """Return the number of a line, ``None`` if its checksum does not match."""
    seal = _SEALED.search(line, max(0, len(line) - _MAX_SEAL))
    if seal is None or int(seal[2], 16) != zlib.crc32(line[:-_CHECKSUM]):
        return None
    return int(seal[1])


def _seal(head: bytes) -> bytes:
    return b',"crc32":"%08x"}' % zlib.crc32(head)
