"""Scratch folders and their removal with any content: shutil.rmtree fails for deeply nested folders.

``shutil.rmtree`` recurses into every level, so a few thousand nested folders make it fail. ``clear`` moves nested
folders up instead, so that depth needs no stack, open files or long paths.

This module uses only the standard library, because processes of other interpreters import it too.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLEARING_S = 60.0
"""Most seconds for the removal of one folder, enough for about a million entries."""

_NAME = "ace-bench-"
_YOUNG_S = 60.0
"""A younger scratch folder without a lock may be one that is just being made."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def clear(folder: str | Path, *, seconds: float = CLEARING_S) -> bool:
    """Remove a folder with its content and return whether it is gone; never raises ``OSError``.

    No process that can write to the folder may still run. If the path is a link, it is not followed.
    """
    deadline = time.monotonic() + seconds
    try:
        descriptor = os.open(folder, _FOLDER)
        try:
            _FolderRemoval(descriptor, deadline).run()
        finally:
            os.close(descriptor)
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """Make a folder for temporary files and remove it at the end.

    It stays locked while this process lives: ``clear_abandoned`` removes only the folders of killed processes.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{_NAME}{kind}-")).resolve()
    lock = os.open(folder, _FOLDER)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        clear(folder)
        os.close(lock)


def clear_abandoned(kind: str) -> None:
    """Remove this user's scratch folders that killed processes left behind."""
    for folder in abandoned_folders(kind):
        clear(folder)


def abandoned_folders(kind: str = "*") -> list[Path]:
    """Return this user's scratch folders that killed processes left behind."""
    folders = []
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{_NAME}{kind}-*"):
        with suppress(OSError):  # it has gone meanwhile
            if _is_abandoned(folder):
                folders.append(folder)
    return sorted(folders)


def _is_abandoned(folder: Path) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_S:
        return False
    descriptor = os.open(folder, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


class _FolderRemoval:
    """Removes everything in an open folder, until a deadline on the monotonic clock."""

    def __init__(self, folder: int, deadline: float):
        self._folder = folder
        self._until = deadline
        self._names = map(f"{secrets.token_hex(8)}-{{}}".format, itertools.count())
        self._removed = 0

    def run(self) -> None:
        """Remove everything; raises ``OSError`` if something cannot be removed in time."""
        while True:
            before, failed = self._removed, None
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    try:
                        self._remove(entry)
                    except TimeoutError:
                        raise
                    except OSError as error:
                        failed = error
            if self._removed == before:
                if failed is not None:
                    raise failed
                return

    def _remove(self, entry: os.DirEntry[str]) -> None:
        if not entry.is_dir(follow_symlinks=False):
            self._unlink(entry, self._folder)
            return
        os.chmod(entry.name, 0o700, dir_fd=self._folder)  # the owner may have locked itself out
        inner = os.open(entry.name, _FOLDER, dir_fd=self._folder)
        try:
            with os.scandir(inner) as entries:
                for within in entries:
                    self._take(within, inner)
        finally:
            os.close(inner)
        os.rmdir(entry.name, dir_fd=self._folder)
        self._count()

    def _take(self, entry: os.DirEntry[str], parent: int) -> None:
        """Remove a file of a nested folder; move a folder up, for a later pass."""
        if not entry.is_dir(follow_symlinks=False):
            self._unlink(entry, parent)
            return
        os.chmod(entry.name, 0o700, dir_fd=parent)  # moving a folder changes its entry ".."
        os.rename(entry.name, next(self._names), src_dir_fd=parent, dst_dir_fd=self._folder)
        self._count()

    def _unlink(self, entry: os.DirEntry[str], parent: int) -> None:
        os.unlink(entry.name, dir_fd=parent)
        self._count()

    def _count(self) -> None:
        self._removed += 1
        if time.monotonic() > self._until:
            raise TimeoutError("the folder holds more than can be removed in time")
