"""``checksums.jsonl``: checksums of files in a run folder that are written as a whole, to detect damage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import FolderDamaged, StoreError
from ace_bench.store.files import DiskGuard
from ace_bench.store.lines import AppendLog, is_line_of, read_lines

FILE = "checksums.jsonl"


class _Line(msgspec.Struct):
    file: str
    sha256: str


class Checksums:
    """A SHA-256 for each version of a file. It is added before the file is written, so a kill in between is harmless.

    A file without checksum, as in folders of older versions, is not checked.
    """

    def __init__(self, folder: Path, guard: DiskGuard):
        path = folder / FILE
        self._log = AppendLog(path, parse_checksum, guard=guard, meaning="the files they belong to are not checked")
        self._known = {(line.file, line.sha256) for line in self._log.found.entries}
        self._log.repair()

    def add(self, contents: Mapping[str, bytes]) -> None:
        """Add the checksums of files that will be written next."""
        before = len(self._known)
        for name, content in contents.items():
            line = _Line(file=name, sha256=hashlib.sha256(content).hexdigest())
            if (line.file, line.sha256) not in self._known:
                self._log.append(msgspec.to_builtins(line))
                self._known.add((line.file, line.sha256))
        if len(self._known) > before:
            self._log.sync()

    def close(self) -> None:
        """Close the file."""
        self._log.close()


class CheckedFiles:
    """The files of a run folder, each compared with its checksum when it is read; the checksums are read once."""

    def __init__(self, folder: Path):
        self.folder = folder

    def read(self, name: str) -> bytes:
        """Read a file; raises ``FolderDamaged``, and ``OSError``."""
        with open(f"{self.folder}/{name}", "rb", buffering=0) as file:
            content = file.readall()
        digest = hashlib.sha256(content).hexdigest()
        if not self._holds(_Line(file=name, sha256=digest)):
            lines = read_lines(self.folder / FILE, parse_checksum).entries
            versions = {line.sha256 for line in lines if line.file == name}
            if versions and digest not in versions:
                raise FolderDamaged(
                    f"{self.folder / name} is damaged (its checksum does not fit); repeat the command of the run"
                )
        return content

    def _holds(self, line: _Line) -> bool:
        """Whether the checksums hold a line, undamaged; looks for it without parsing the others."""
        at = self._checksums.find(line.sha256.encode())
        start, end = self._checksums.rfind(b"\n", 0, at) + 1, self._checksums.find(b"\n", at)
        return min(at, end) > 0 and is_line_of(self._checksums[start:end], msgspec.json.encode(line))

    @cached_property
    def _checksums(self) -> bytes:
        try:
            with open(f"{self.folder}/{FILE}", "rb", buffering=0) as file:
                return file.readall()
        except OSError:
            return b""  # read_lines says what is wrong


def read_checked(folder: Path, name: str) -> bytes:
    """Read a file of a run folder; raises ``FolderDamaged``, and ``OSError``."""
    return CheckedFiles(folder).read(name)


def checksummed_files(folder: Path) -> set[str]:
    """Return the names of the files that have a checksum: all that were ever written as a whole."""
    return {line.file for line in read_lines(folder / FILE, parse_checksum).entries}


def damaged_files(folder: Path) -> tuple[str, ...]:
    """Return the files of a run folder that are missing or do not match their checksums."""
    versions: dict[str, set[str]] = {}
    for line in read_lines(folder / FILE, parse_checksum).entries:
        versions.setdefault(line.file, set()).add(line.sha256)
    return tuple(name for name, known in versions.items() if _digest(folder / name) not in known)


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); make it readable, or restore it") from error


def parse_checksum(line: bytes) -> _Line:
    """Read a line of ``checksums.jsonl``; raises ``ValueError``."""
    parsed: _Line = decoder_of(_Line).decode(line)
    return parsed
