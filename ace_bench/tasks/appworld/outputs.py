"""Copies what an episode saved to a folder that agent code cannot reach, and checks it.

Agent code ran in the process that wrote the files, so none of them can be trusted. Only files with the engine's names
are copied, no links, up to a total size. The scorer runs the saved changes of the databases as SQL, so a statement must
be one that changes rows.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.typed import decoder_of

MAX_BYTES = 64 << 20
"""Most bytes that are copied from one episode."""
SAVED = "out"
"""The engine's output folder within an episode's folder."""

_CHANGES = re.compile(r"[a-z_]+\.jsonl")
_KNOWN = {
    "dbs": re.compile(r"[a-z_]+\.jsonl|model_hashes\.json"),
    "logs": re.compile(r"api_calls\.jsonl|environment_io\.md"),
    "version": re.compile(r"code\.txt|data\.txt"),
}
_STATEMENT = re.compile(r"\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM)\s", re.IGNORECASE)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_Change = tuple[str, Any, bool]


class Unusable(Exception):
    """The outputs cannot be scored, and the agent caused it: the engine itself writes valid ones."""


def collect(episode: Path, task: str, target: Path) -> None:
    """Copy what the engine saved of a task from an episode's folder to ``target``; raises ``Unusable``."""
    copied = 0
    with _folder(episode, SAVED, "tasks", task) as saved:
        for kind, known in _KNOWN.items():
            with _folder(saved, kind) as folder:
                for name in sorted(filter(known.fullmatch, os.listdir(folder))):
                    content = _content(folder, name, MAX_BYTES - copied)
                    copied += len(content)
                    if kind == "dbs" and _CHANGES.fullmatch(name):
                        _check_changes(name, content)
                    (target / kind).mkdir(parents=True, exist_ok=True)
                    (target / kind / name).write_bytes(content)


@contextmanager
def _folder(parent: Path | int, *names: str) -> Iterator[int]:
    """Open a nested folder step by step; no step may be a link."""
    descriptor = os.open(parent, _FOLDER) if isinstance(parent, Path) else os.dup(parent)
    try:
        for name in names:
            inner = _open(name, _FOLDER, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _content(folder: int, name: str, most: int) -> bytes:
    descriptor = _open(name, _FILE, folder)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            raise Unusable(f"{name} is not a plain file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise Unusable(f"the saved files hold more than {MAX_BYTES >> 20} MiB")
    return content


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise Unusable(f"{name}: {error.strerror}") from error


def _check_changes(name: str, content: bytes) -> None:
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            statement = decoder_of(_Change).decode(line)[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unusable(f"{name}, line {number} is no saved change") from error
        if not _STATEMENT.match(statement):
            raise Unusable(f"{name}, line {number} holds SQL that is no change of rows")
