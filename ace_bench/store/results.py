"""``metrics.json`` and the other files of a run folder that are written as a whole: checked when they are read.

``checksums.jsonl`` holds a SHA-256 for each version of them; JSON must have the shape that its readers need.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.encoding import converted, decoder_of
from ace_bench.core.errors import FolderDamaged, StoreError
from ace_bench.core.types import Labels
from ace_bench.store.files import DiskGuard
from ace_bench.store.lines import AppendLog, read_lines

METRICS, IDENTITY, SUMMARY, SETTINGS = "metrics.json", "identity.json", "summary.txt", "config.yaml"
CHECKSUMS = "checksums.jsonl"

_Scores = dict[str, float | int | None]
_Counts = dict[str, dict[str, int]]


class _Headline(msgspec.Struct):
    split: str
    metric: str
    after: float
    n: int
    before: float | None
    ci95: tuple[float, float] | None


class _Split(msgspec.Struct):
    after: _Scores
    before: _Scores | None


class _Context(msgspec.Struct):
    kind: str
    items: int
    tokens: int
    digest: str


class _About(msgspec.Struct):
    """The fields that describe a run, in ``environment.json`` and ``metrics.json``."""

    task: str
    method: str
    backbone: str
    mode: str
    labels: Labels
    seed: int
    source: str
    simulated: bool
    digest: str


class _TotalTokens(msgspec.Struct, rename={"prompt": "in", "completion": "out"}):
    prompt: int | None
    completion: int | None


class _Tokens(msgspec.Struct):
    total: _TotalTokens


class _TotalCache(msgspec.Struct):
    cached_tokens: int | None


class _Cache(msgspec.Struct):
    total: _TotalCache


class _Dollars(msgspec.Struct):
    total: float | None


class _Metrics(_About):
    headline: _Headline
    splits: dict[str, _Split]
    context: _Context
    rollouts: dict[str, int]
    steps: int
    calls: _Counts
    faults: _Counts
    tokens: _Tokens
    usd: _Dollars
    replayed: dict[str, int]
    dropped_items: dict[str, int]
    cache: _Cache
    timing: dict[str, dict[str, float]]


class _Status(msgspec.Struct):
    state: str
    reason: str = ""


class _Groups(msgspec.Struct):
    task: dict[str, Any]
    method: dict[str, Any]
    agent: dict[str, Any]
    backbone: dict[str, Any]
    mode: dict[str, Any]


class _Settings(_Groups):
    roles: dict[str, dict[str, Any] | None] | None = None


class _Decided(_Groups):
    roles: dict[str, dict[str, Any]]


class _Identity(msgspec.Struct):
    digest: str
    settings: _Decided
    contents: dict[str, Any]


def read_metrics(folder: Path) -> dict[str, Any] | None:
    """Return the metrics of a finished run, ``None`` if it has not finished; raises ``StoreError``."""
    return _metrics(CheckedFiles(folder))


def read_result(folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return ``read_metrics`` and ``read_identity`` of a run in one go; raises ``StoreError``."""
    files = CheckedFiles(folder)
    return _metrics(files), _read(files, IDENTITY, _identity)


def _metrics(files: CheckedFiles) -> dict[str, Any] | None:
    path = f"{files.folder}/{METRICS}"
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError.unreadable(files.folder, error) from error
    metrics = _read(files, METRICS, partial(_object, kind=_Metrics))
    if metrics["headline"]["split"] not in metrics["splits"]:
        raise FolderDamaged(f"{path} is damaged (no scores of its split); repeat the command of the run")
    return metrics


def read_about(folder: Path) -> dict[str, Any]:
    """Return the description of a run in ``environment.json``; raises ``StoreError``."""
    return read_object(folder, "environment.json", _About)


def read_status(folder: Path) -> dict[str, Any]:
    """Return the state of a run; raises ``StoreError``."""
    return read_object(folder, "status.json", _Status)


def read_identity(folder: Path) -> dict[str, Any]:
    """Return the identity of a run, as written by ``RunIdentity.dump``; raises ``StoreError``."""
    return _read(CheckedFiles(folder), IDENTITY, _identity)


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the resolved configuration of a run; raises ``StoreError``."""
    return _read(CheckedFiles(folder), SETTINGS, _settings)


def read_object(folder: Path, name: str, kind: type | None = None) -> dict[str, Any]:
    """Read a JSON object of a run folder that has the fields of ``kind``; raises ``StoreError``."""
    return _read(CheckedFiles(folder), name, partial(_object, kind=kind))


def _object(content: bytes, kind: type | None) -> dict[str, Any]:
    if kind is not None:
        decoder_of(kind).decode(content)
    found: dict[str, Any] = decoder_of(dict[str, Any]).decode(content)
    return found


@lru_cache(maxsize=8)
def _identity(content: bytes) -> dict[str, Any]:
    """Parse an identity; the seeds of an experiment, which are read one after the other, share theirs."""
    return _object(content, _Identity)


def _settings(content: bytes) -> dict[str, Any]:
    found = msgspec.yaml.decode(content, type=dict[str, Any])
    converted(found, _Settings)
    return found


def _read(files: CheckedFiles, name: str, decode: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    path = f"{files.folder}/{name}"
    try:
        return decode(files.read(name))
    except FileNotFoundError as error:
        raise FolderDamaged(f"{path} is missing; repeat the command of the run") from error
    except OSError as error:
        raise StoreError.unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or another shape
        raise FolderDamaged(f"{path} is damaged ({error}); repeat the command of the run") from error


class _ChecksumLine(msgspec.Struct):
    file: str
    sha256: str


class Checksums:
    """A SHA-256 for each version of a file. It is added before the file is written, so a kill in between is harmless.

    A file without checksum, as in folders of older versions, is not checked.
    """

    def __init__(self, folder: Path, guard: DiskGuard):
        path = folder / CHECKSUMS
        meaning = "the files they belong to are not checked"
        self._log = AppendLog(read_lines(path, parse_checksum), guard=guard, meaning=meaning)
        self._known = {(line.file, line.sha256) for line in self._log.found.entries}
        self._log.repair()

    def add(self, contents: Mapping[str, bytes]) -> None:
        """Add the checksums of files that will be written next."""
        lines = [_ChecksumLine(file=name, sha256=hashlib.sha256(one).hexdigest()) for name, one in contents.items()]
        new = [line for line in lines if (line.file, line.sha256) not in self._known]
        for line in new:
            self._log.append(msgspec.to_builtins(line))
            self._known.add((line.file, line.sha256))
        if new:
            self._log.sync()

    def close(self) -> None:
        """Close the file."""
        self._log.close()


class CheckedFiles:
    """The files of a run folder, each compared with its checksums when it is read; these are read once."""

    def __init__(self, folder: Path):
        self.folder = folder

    def read(self, name: str) -> bytes:
        """Read a file; raises ``FolderDamaged``, and ``OSError``."""
        with open(f"{self.folder}/{name}", "rb", buffering=0) as file:
            content = file.readall()
        versions = self.versions.get(name)
        if versions and hashlib.sha256(content).hexdigest() not in versions:
            raise FolderDamaged(
                f"{self.folder / name} is damaged (its checksum does not fit); repeat the command of the run"
            )
        return content

    @cached_property
    def versions(self) -> dict[str, set[str]]:
        """The checksums of each file, one for every version that was written."""
        versions: dict[str, set[str]] = {}
        for line in read_lines(self.folder / CHECKSUMS, parse_checksum).entries:
            versions.setdefault(line.file, set()).add(line.sha256)
        return versions

    def is_intact(self, name: str) -> bool:
        """Whether a file is there and undamaged; raises ``StoreError`` if it cannot be read."""
        try:
            self.read(name)
        except (FileNotFoundError, FolderDamaged):
            return False
        except OSError as error:
            raise StoreError.unreadable(self.folder / name, error) from error
        return True


def read_checked(folder: Path, name: str) -> bytes:
    """Read a file of a run folder; raises ``FolderDamaged``, and ``OSError``."""
    return CheckedFiles(folder).read(name)


def checksummed_files(folder: Path) -> set[str]:
    """Return the names of the files that have a checksum: all that were ever written as a whole."""
    return set(CheckedFiles(folder).versions)


def damaged_files(folder: Path) -> tuple[str, ...]:
    """Return the files of a run folder that are missing or do not match their checksums."""
    files = CheckedFiles(folder)
    return tuple(name for name in files.versions if not files.is_intact(name))


def parse_checksum(line: bytes) -> _ChecksumLine:
    """Read a line of ``checksums.jsonl``; raises ``ValueError``."""
    parsed: _ChecksumLine = decoder_of(_ChecksumLine).decode(line)
    return parsed
