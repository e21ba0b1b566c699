"""Copies what an episode saved to a folder that agent code cannot reach.

The world's process wrote the databases' changes, which are graded, and the versions; the interpreter, and so perhaps
agent code, wrote the logs. Only files with the engine's names are copied, no links, up to a total size.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 64 << 20
"""Most bytes that are copied from one episode."""

_KNOWN = {
    "dbs": re.compile(r"[a-z_]+\.jsonl|model_hashes\.json"),
    "logs": re.compile(r"api_calls\.jsonl|environment_io\.md"),
    "version": re.compile(r"code\.txt|data\.txt"),
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unusable(Exception):
    """The outputs cannot be scored, and the agent caused it: the engine itself writes valid ones."""


def collect(episode: Path, task: str, target: Path) -> None:
    """Copy what was saved of a task from an episode's folder to ``target``; raises ``Unusable``."""
    copied = 0
    saved = ("world", "out", "tasks", task)
    places = {"dbs": (*saved, "dbs"), "logs": ("agent", "logs"), "version": (*saved, "version")}
    for kind, place in places.items():
        (target / kind).mkdir(parents=True)
        with _folder(episode, *place) as folder:
            for name in sorted(filter(_KNOWN[kind].fullmatch, os.listdir(folder))):
                content = _content(folder, name, MAX_BYTES - copied)
                copied += len(content)
                (target / kind / name).write_bytes(content)


@contextmanager
def _folder(parent: Path, *names: str) -> Iterator[int]:
    """Open a nested folder step by step; no step may be a link."""
    descriptor = os.open(parent, _FOLDER)
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
