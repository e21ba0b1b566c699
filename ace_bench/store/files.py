"""Atomic writes of all files of a command or none; ours, because libraries replace one file at a time.

Here are also the errors that users see when a write fails, and the cache folders of a user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import IO

from ace_bench.core.errors import FileUnwritable

CACHE_VARIABLE = "ACE_BENCH_CACHE"
DRAFT = ".part"
"""Suffix of a file that is not complete yet."""

_SEAL = sha256().digest_size
"""Bytes of the checksum in front of a sealed file."""
_SYNCS_AT_ONCE = 8
_ELSEWHERE = "name another place"
PRIVATE = 0o700
"""The mode of folders that only their owner may enter."""
_FIXES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable, or {elsewhere}"),
    errno.EISDIR: "move that folder away",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit on open files (ulimit -n)"),
    **dict.fromkeys((errno.ENOTSUP, errno.ENOLCK), "its file system has no locks; {elsewhere}"),
    **dict.fromkeys((errno.EIO, errno.ESTALE), "check its disk"),
}
"""What to do about an error, by its number; about any other, name another place."""
_OF_OUTPUTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors without a file's name that are about the standard output."""


def disk_problem(error: OSError, path: object = None, *, elsewhere: str = _ELSEWHERE, failed: str = "written") -> str:
    """Return one sentence with the cause and the fix.

    ``path`` replaces a missing or temporary file name; without either, it may be about the standard output.
    ``elsewhere`` is how the user chooses another place, ``failed`` what could not be done to the file.
    """
    file_name = error.filename2 or error.filename
    file = path if file_name is None or str(file_name).endswith(DRAFT) else file_name
    unnamed = "the output cannot be written" if error.errno in _OF_OUTPUTS else f"a file cannot be {failed}"
    subject = unnamed if file is None else f"{file} cannot be {failed}"
    fix = _FIXES.get(error.errno or 0, "{elsewhere}").format(elsewhere=elsewhere)
    return f"{subject} ({error.strerror or error}); {fix}"


def write_files(contents: Mapping[Path, str | bytes]) -> list[Path]:
    """Write the files of a command, all or none where the disk is full, and return their paths.

    Raises ``FileUnwritable``; files that were there before then keep their content.
    """
    with writing(next(iter(contents), None)):
        replace_files({path: text.encode() if isinstance(text, str) else text for path, text in contents.items()})
    return list(contents)


@contextlib.contextmanager
def writing(path: Path | None = None, *, elsewhere: str = _ELSEWHERE) -> Iterator[None]:
    """Turn an ``OSError`` into ``FileUnwritable``; for the arguments see ``disk_problem``."""
    try:
        yield
    except OSError as error:
        raise FileUnwritable(disk_problem(error, path, elsewhere=elsewhere)) from error


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder, which may exist and be empty, and remove it with its content if the block fails.

    Raises ``FileUnwritable``.
    """
    existed = path.exists()
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield
        except BaseException:
            for entry in path.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            if not existed:
                path.rmdir()
            raise


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Replace files atomically, also in case of a power failure; raises ``OSError``.

    On return the files are synced to disk.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            drafts[path] = _draft(path)
            with drafts[path].open("xb") as file:
                file.write(content)
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:  # file systems commit several files in one go
            list(pool.map(sync, drafts.values()))
        for path, draft in drafts.items():
            draft.replace(path)
    except BaseException:
        for draft in drafts.values():
            with contextlib.suppress(OSError):  # the first error is the one to raise
                draft.unlink()
        raise
    sync_folders(path.parent for path in contents)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of ``path`` once the block ends; if it fails, nothing remains of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(path)
    try:
        with draft.open("xb") as file:
            yield file
        sync(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _draft(path: Path) -> Path:
    """Return a name for a draft: several processes may write a cache at once, and each needs its own."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}{DRAFT}")


def make_folders(path: Path, mode: int) -> list[Path]:
    """Make a folder and those above it that are missing; return these, the innermost first. Raises ``OSError``.

    ``mode`` is theirs, less what the umask takes; folders that exist keep their own.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode, exist_ok=True)
    return missing


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


def cache_folder(name: str) -> Path:
    """Return the folder for caches called ``name``, shared by all runs of a user; it need not exist yet.

    The root is ``$ACE_BENCH_CACHE``, else ``$XDG_CACHE_HOME/ace-bench``, else ``~/.cache/ace-bench``.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / name
    shared = os.environ.get("XDG_CACHE_HOME")
    root = Path(shared).expanduser() if shared else Path.home() / ".cache"
    return root / "ace-bench" / name


def write_cached(path: Path, content: bytes) -> None:
    """Write a file of a cache atomically, since other runs may read it; raises ``FileUnwritable``."""
    with writing(path, elsewhere=f"set {CACHE_VARIABLE} to a folder"):
        replace_files({path: content})


def read_sealed(path: Path) -> bytes | None:
    """Return what ``write_sealed`` wrote; ``None`` if it is missing or damaged, since others may write it, too."""
    try:
        sealed = path.read_bytes()
    except OSError:
        return None
    content = sealed[_SEAL:]
    return content if content and sealed[:_SEAL] == sha256(content).digest() else None


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file of a cache with its checksum; raises ``FileUnwritable``."""
    write_cached(path, sha256(content).digest() + content)
