"""``metrics.json`` and the other files of a run folder that are written as a whole: checked when they are read.

``checksums.jsonl`` holds a SHA-256 for each version of them; JSON must have the shape that its readers need.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ace_bench.core.encoding import convert, decoder_of
from ace_bench.core.errors import FolderDamaged, StoreError
from ace_bench.core.types import Labels
from ace_bench.store.lines import AppendLog, DiskGuard, read_lines

METRICS, IDENTITY, SUMMARY, SETTINGS = "metrics.json", "identity.json", "summary.txt", "config.yaml"
ENVIRONMENT, CHECKSUMS = "environment.json", "checksums.jsonl"
NOTHING = "nothing"
"""What a run records as ``drawn`` if its seed changes no request."""
_DIGEST_SHOWN = 12
_SEED_FOLDER, _DIGEST_FOLDER = re.compile(r"seed(\d+)(?:-\d+)?"), re.compile(rf"[0-9a-f]{{{_DIGEST_SHOWN}}}")
_GROUP_FOLDER = re.compile(r"\w+-\w+-\w+-\w+")


def _object_with(fields: Mapping[str, Any]) -> type[msgspec.Struct]:
    """Return the type of JSON objects with these fields, of which those with fields of their own are objects, too."""
    kinds = [(name, _object_with(kind) if isinstance(kind, dict) else kind) for name, kind in fields.items()]
    return msgspec.defstruct("Fields", kinds)


_Scores = dict[str, float | int | None]
_Counts = dict[str, dict[str, int]]
_Group = dict[str, Any]
_GROUPS = dict.fromkeys(("task", "method", "agent", "backbone", "mode"), _Group)
_SETTINGS = msgspec.defstruct("Settings", [*_GROUPS.items(), ("roles", dict[str, _Group | None] | None, None)])
_IDENTITY = _object_with({"digest": str, "settings": {**_GROUPS, "roles": dict[str, _Group]}, "contents": _Group})
_STATUS = _object_with({"state": str})
_Option = Annotated[str, msgspec.Meta(pattern=r"\A[\w./-]*\Z")]
"""A name of an option. Tables compose configurations of these names, so that a folder may put nothing else there."""
_ABOUT: dict[str, Any] = dict.fromkeys(("task", "method", "backbone", "mode", "source", "digest"), _Option)
_ABOUT |= {"labels": Labels, "seed": int, "simulated": bool}
"""The fields that describe a run, in ``environment.json`` and ``metrics.json``."""
_DESCRIPTION = _object_with(_ABOUT)
_MOST_SETTINGS = 100_000
_HEADLINE = {"split": str, "metric": str, "n": int, "after": float, "before": float | None}
_SPLIT: Any = _object_with({"after": _Scores, "before": _Scores | None})
_METRICS = _object_with(
    {
        **_ABOUT,
        "headline": {**_HEADLINE, "ci95": tuple[float, float] | None},
        "splits": dict[str, _SPLIT],
        "context": {"kind": str, "items": int, "tokens": int, "digest": str},
        "steps": int,
        **dict.fromkeys(("rollouts", "replayed", "dropped_items"), dict[str, int]),
        **dict.fromkeys(("calls", "faults"), _Counts),
        "tokens": {"total": {"in": int | None, "out": int | None}},
        "cache": {"total": {"cached_tokens": int | None}},
        "usd": {"total": float | None},
        "timing": dict[str, dict[str, float | None]],
    }
)


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
    metrics = _read(files, METRICS, partial(_object, kind=_METRICS))
    if metrics["headline"]["split"] not in metrics["splits"]:
        raise FolderDamaged(f"{path} is damaged (no scores of its split); repeat the command of the run")
    return metrics


def read_about(folder: Path) -> dict[str, Any]:
    """Return the description of a run in ``environment.json``; raises ``StoreError``."""
    return read_object(folder, ENVIRONMENT, _DESCRIPTION)


def read_status(folder: Path) -> dict[str, Any]:
    """Return the state of a run; raises ``StoreError``."""
    return read_object(folder, "status.json", _STATUS)


def read_identity(folder: Path) -> dict[str, Any]:
    """Return the identity of a run, as written by ``RunIdentity.dump``; raises ``StoreError``."""
    return _read(CheckedFiles(folder), IDENTITY, _identity)


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a run records of itself that its folders are named by. ``folder`` is where it lies now."""

    folder: Path
    group: str
    digest: str
    seed: int

    @property
    def path(self) -> str:
        """Where it belongs, below the folder of its experiment."""
        return f"{self.group}/{self.digest[:_DIGEST_SHOWN]}/seed{self.seed}"

    @property
    def problem(self) -> str:
        """Say which name of a folder is another run's, "" if none is. A name of another form says nothing."""
        seed, digest, group = (part.name for part in (self.folder, self.folder.parent, self.folder.parent.parent))
        match = _SEED_FOLDER.fullmatch(seed)
        wrong = [
            match is not None and int(match[1]) != self.seed,
            _DIGEST_FOLDER.fullmatch(digest) is not None and not self.digest.startswith(digest),
            _GROUP_FOLDER.fullmatch(group) is not None and group != self.group,
        ]
        if not any(wrong):
            return ""
        return f"{self.folder} was moved or renamed: by its own records it is {self.path}, and counts as that"


def read_place(folder: Path) -> Place:
    """Return what a run records of its place, finished or not; raises ``StoreError``."""
    return place_of_run(folder.resolve(), read_metrics(folder) or read_about(folder), read_identity(folder)["digest"])


def place_of_run(folder: Path, about: Mapping[str, Any], digest: str) -> Place:
    """Return the place of a run from its description and the digest of its identity; ``folder`` is no link."""
    group = "-".join(about[name] for name in ("task", "method", "backbone", "mode"))
    return Place(folder=folder, group=group, digest=digest, seed=about["seed"])


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the resolved configuration of a run; raises ``StoreError``."""
    return _read(CheckedFiles(folder), SETTINGS, _settings)


def read_object(folder: Path, name: str, kind: type | None = None) -> dict[str, Any]:
    """Read a JSON object of a run folder that has the fields of ``kind``; raises ``StoreError``."""
    return _read(CheckedFiles(folder), name, partial(_object, kind=kind))


def _object(content: bytes, kind: type | None) -> dict[str, Any]:
    if kind is not None:
        decoder_of(kind).decode(content)
    record: dict[str, Any] = decoder_of(dict[str, Any]).decode(content)
    return record


@lru_cache(maxsize=8)
def _identity(content: bytes) -> dict[str, Any]:
    """Parse an identity; the seeds of an experiment, which are read one after the other, share theirs."""
    return _object(content, _IDENTITY)


def _settings(content: bytes) -> dict[str, Any]:
    settings = msgspec.yaml.decode(content, type=dict[str, Any])
    _check_size(settings)
    convert(settings, _SETTINGS)
    return settings


def _check_size(settings: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for settings that repeat parts, by anchors of YAML, until nothing can walk through them."""
    parts: list[Any] = [settings]
    count = 0
    while parts:
        part = parts.pop()
        count += 1
        if count > _MOST_SETTINGS:
            raise ValueError(f"more than {_MOST_SETTINGS:,} settings")
        if isinstance(part, Mapping):
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)


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


class Checksums(AppendLog[_ChecksumLine]):
    """A SHA-256 for each version of a file. It is added before the file is written, so a kill in between is harmless.

    A file without checksum, as in folders of older versions, is not checked.
    """

    def __init__(self, folder: Path, guard: DiskGuard):
        meaning = "the files they belong to are not checked"
        super().__init__(read_lines(folder / CHECKSUMS, parse_checksum), guard=guard, meaning=meaning)
        self._known = {(line.file, line.sha256) for line in self.found.entries}
        self.repair()

    def add(self, contents: Mapping[str, bytes]) -> None:
        """Add the checksums of files that will be written next."""
        lines = [
            _ChecksumLine(file=name, sha256=hashlib.sha256(content).hexdigest()) for name, content in contents.items()
        ]
        new = [line for line in lines if (line.file, line.sha256) not in self._known]
        for line in new:
            self.append(msgspec.to_builtins(line))
            self._known.add((line.file, line.sha256))
        if new:
            self.sync()


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

    def damaged(self) -> tuple[str, ...]:
        """Return the files that are missing or do not match their checksums; raises ``StoreError``."""
        return tuple(name for name in self.versions if not self._is_intact(name))

    def _is_intact(self, name: str) -> bool:
        try:
            self.read(name)
        except (FileNotFoundError, FolderDamaged):
            return False
        except OSError as error:
            raise StoreError.unreadable(self.folder / name, error) from error
        return True


def parse_checksum(line: bytes) -> _ChecksumLine:
    """Read a line of ``checksums.jsonl``; raises ``ValueError``."""
    parsed: _ChecksumLine = decoder_of(_ChecksumLine).decode(line)
    return parsed
