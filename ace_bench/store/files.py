"""Files written whole or not at all, and what a user reads where a disk does not take them."""

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
"""How the name of a file ends that is not whole yet."""

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
    """Shared by all files of a folder: after the first write that fails, none is tried any more."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self.on_failure: Callable[[FolderUnwritable], None] = lambda _: None
        """Is given the first failure, so that others stop who would pay for what cannot be kept."""

    @property
    def is_shut(self) -> bool:
        """Whether a write has failed."""
        return self._reason is not None

    def check(self) -> None:
        """Raise ``FolderUnwritable`` where a write has failed before."""
        if self._reason is not None:
            raise FolderUnwritable(self._reason)

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turn an ``OSError`` inside into ``FolderUnwritable``, and let no later write begin."""
        self.check()
        try:
            yield
        except OSError as error:
            named = error.filename2 or error.filename
            file = path if named is None or str(named).endswith(DRAFT) else named
            fix = _FIXES.get(error.errno or 0, "check its disk")
            # Several threads may fail at once: all give the first reason.
            self._reason = self._reason or f"{file} cannot be written ({error.strerror or error}); {fix}"
            failure = FolderUnwritable(self._reason)
            self.on_failure(failure)
            raise failure from error


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write files so that each is either the old or the new one, also after a power failure; raises ``OSError``.

    On return they are on the disk itself.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Caches are written by several processes at once: each needs a draft of its own.
            drafts[path] = path.with_name(f"{path.name}.{secrets.token_hex(4)}{DRAFT}")
            with drafts[path].open("xb") as file:
                file.write(content)
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:  # file systems commit several at the price of one
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
    """Make the names in some folders safe against a power failure; raises ``OSError``."""
    for folder in dict.fromkeys(folders):
        sync(folder)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk itself; raises ``OSError``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
