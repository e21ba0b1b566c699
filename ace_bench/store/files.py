"""Atomic file writes, and the errors that users see when a write fails."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ace_bench.core.errors import FolderUnwritable

DRAFT = ".part"
"""Suffix of a file that is not complete yet."""

_SYNCS_AT_ONCE = 8
_NO_ACCESS = "make it writable, or choose another folder with results="
_NO_FOLDER = "choose another folder with results="
_FIXES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _NO_ACCESS),
    errno.EISDIR: "move that folder away",
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG), _NO_FOLDER),
}


class WriteGate:
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

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turn an ``OSError`` inside into ``FolderUnwritable``, and block later writes."""
        self.check()
        try:
            yield
        except OSError as error:
            named = error.filename2 or error.filename
            file = path if named is None or str(named).endswith(DRAFT) else named
            fix = _FIXES.get(error.errno or 0, "check its disk")
            # If several threads fail at once, all report the first reason.
            self._reason = self._reason or f"{file} cannot be written ({error.strerror or error}); {fix}"
            failure = FolderUnwritable(self._reason)
            self.on_failure(failure)
            raise failure from error


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Replace files atomically, also in case of a power failure; raises ``OSError``.

    On return the files are synced to disk.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Several processes may write a cache at once: each needs its own draft.
            drafts[path] = path.with_name(f"{path.name}.{secrets.token_hex(4)}{DRAFT}")
            with drafts[path].open("xb") as file:
                file.write(content)
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:  # file systems commit several files in one go
            list(pool.map(sync, drafts.values()))
        for path, draft in drafts.items():
            draft.replace(path)
    except BaseException:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink()
        raise
    sync_folders(path.parent for path in contents)


def sync_folders(folders: Iterable[Path]) -> None:
    """Sync the names in some folders to disk; raises ``OSError``."""
    for folder in dict.fromkeys(folders):
        sync(folder)


def sync(path: Path) -> None:
    """Sync a file or folder to disk; raises ``OSError``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
