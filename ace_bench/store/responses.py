"""The response cache: replies shared between runs, by model, settings and prompt (optional).

It is ours on SQLite: diskcache has no checksums, and damaged replies must be found and paid for again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import StoreError
from ace_bench.core.types import NO_USAGE, Completion, Message, Record
from ace_bench.store.files import PRIVATE, make_folders
from ace_bench.store.sqlite_files import use_write_ahead_log

FILE = "responses.sqlite"
_log = logging.getLogger(__name__)

_TABLE = """
CREATE TABLE IF NOT EXISTS checked_replies (key TEXT PRIMARY KEY, model TEXT, text TEXT, checksum INTEGER) STRICT
"""
_ALL = "SELECT key, model, text, checksum FROM checked_replies"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED_S = 5.0
"""How long another program may keep the file locked before a run continues without the cache."""
_POLL_S, _MAX_WAIT_S = 0.5, 600.0
"""How often a call that waits for another run's reply checks for a stop, and how long it waits at most."""


class Responses:
    """A SQLite file in a folder that the user chooses; several runs may use it at once.

    A cached reply costs nothing, so it has no usage and no latency and is marked ``replayed``. A problem with the file
    never stops a run: a damaged file is renamed, and if the cache cannot be used the run continues without it. A
    warning says so.
    """

    def __init__(self, folder: Path, mode: int = PRIVATE):
        """Open or create the cache; raises ``StoreError`` if the folder cannot be used.

        ``mode`` applies to new folders, less what the umask takes.
        """
        self._path = folder / FILE
        self._claims = folder / "under_way"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            make_folders(self._claims, mode)
            self._open()
        except (OSError, sqlite3.Error) as error:
            if not _has_code(error, _BUSY):
                raise StoreError(f"response_cache={folder} cannot be used ({error}); choose another folder") from error
            self._disable(error)

    @contextmanager
    def claim(self, key: str, check: Callable[[], None]) -> Iterator[None]:
        """Lock a key over all runs and threads, so that only one of them looks it up and pays for a missing reply.

        The lock ends with its process. ``check`` is called from time to time while waiting.
        """
        lock = FileLock(self._claims / key)
        deadline = time.monotonic() + _MAX_WAIT_S
        try:
            while self._connection is not None and not lock.is_locked and time.monotonic() < deadline:
                try:
                    lock.acquire(timeout=_POLL_S)
                except Timeout:
                    check()
        except OSError as error:
            with self._lock:
                self._disable(error)
        try:
            yield
        finally:
            if lock.is_locked:
                with suppress(OSError):  # waiting processes notice that it is gone and create it again
                    Path(lock.lock_file).unlink()
                lock.release()

    def find(self, key: str) -> Completion | None:
        """Return the reply of a key with its thoughts in its text, ``None`` if there is none."""
        row = self._execute(f"{_ALL} WHERE key = ?", (key,))
        if row is None:
            return None
        if not _is_sound(row):
            _log.warning("%s: a damaged reply is left out and paid for again", self._path)
            self._execute("DELETE FROM checked_replies WHERE key = ?", (key,))
            return None
        _, model, text, _ = row
        return Completion(text=text, usage=NO_USAGE, seconds=0.0, model=model, replayed=True)

    def add(self, key: str, completion: Completion) -> None:
        """Store a reply, unless the key has one."""
        values = (key, completion.model, completion.as_written)
        self._execute("INSERT OR IGNORE INTO checked_replies VALUES (?, ?, ?, ?)", (*values, _checksum(*values)))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Run a statement and return its first row; if the file is damaged, retry with an empty one."""
        with self._lock:
            for _ in range(2):
                if self._connection is None:
                    return None
                try:
                    row: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
                    return row
                except sqlite3.Error as error:
                    if not _has_code(error, _DAMAGED) or not self._renew(error):
                        self._disable(error)
        return None

    def _open(self) -> None:
        self._file = _inode(self._path)
        try:
            self._connection = self._connect()
        except sqlite3.Error as error:
            if not _has_code(error, _DAMAGED):
                raise
            self._set_aside(error)
            self._connection = self._connect()
        self._file = _inode(self._path)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, timeout=_LOCKED_S, isolation_level=None)
        connection.text_factory = _decode_text
        try:
            use_write_ahead_log(connection, _LOCKED_S)
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _renew(self, error: sqlite3.Error) -> bool:
        self._close()
        try:
            self._set_aside(error)
            self._open()
        except (OSError, sqlite3.Error):  # a timeout of the lock is an OSError, too
            return False
        return True

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Rename the damaged file, unless another run has already done so."""
        with FileLock(self._path.with_suffix(".lock"), timeout=_LOCKED_S):
            if _inode(self._path) != self._file:
                return
            moved = _rename(self._path)
        _log.warning(
            "%s is damaged (%s); it was set aside as %s and replies are paid for anew", self._path, error, moved
        )

    def _disable(self, error: Exception) -> None:
        _log.warning("%s cannot be used (%s); this run goes on without the response cache", self._path, error)
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def damage_of(path: Path) -> str:
    """Return what is damaged in the file of a cache, "" for nothing; only reads."""
    try:
        with closing(_read_only(path)) as connection:
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            damaged = sum(not _is_sound(row) for row in connection.execute(_ALL))
    except sqlite3.Error as error:
        return f"{path} is damaged ({error})"
    if state != "ok":
        return f"{path} is damaged ({state})"
    return f"{path}: {damaged} of its replies are damaged" if damaged else ""


def salvage(path: Path) -> int:
    """Replace the file of a damaged cache by one with its sound replies, and return their number.

    The damaged file stays beside it. Raises ``StoreError``.
    """
    rows: list[tuple[Any, ...]] = []
    with suppress(sqlite3.Error), closing(_read_only(path)) as connection:
        rows.extend(connection.execute(_ALL))  # keeps what comes before an error
    sound = [row for row in rows if _is_sound(row)]
    try:
        _rename(path)
        cache = Responses(path.parent)
    except OSError as error:
        raise StoreError(f"{path} cannot be replaced ({error.strerror}); make it writable") from error
    for key, model, text, _ in sound:
        cache.add(key, Completion(text=text, usage=NO_USAGE, seconds=0.0, model=model))
    cache.close()
    return len(sound)


def _rename(path: Path) -> Path:
    """Move a damaged file with its logs aside; return its new name."""
    target = path.with_name(f"damaged-{time.time_ns()}.sqlite")
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{target}{suffix}")
    return target


def _is_sound(row: Sequence[Any]) -> bool:
    *values, checksum = row
    return bool(checksum == _checksum(*values))


def _decode_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")  # damaged text fails its checksum


def _read_only(path: Path) -> sqlite3.Connection:
    """Open a file without changing it or its folder. A write-ahead log is read if it exists."""
    query = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{query}", uri=True, timeout=_LOCKED_S)
    connection.text_factory = _decode_text
    return connection


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def _has_code(error: Exception, codes: Sequence[int]) -> bool:
    """Whether an error has one of SQLite's primary codes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _checksum(key: str, model: str, text: str) -> int:
    return zlib.crc32(f"{key}\n{model}\n{text}".encode())


def response_key(
    identity: Record, messages: Sequence[Message], *, schema: Record | None, seed: int, repetition: int
) -> str:
    """Return the key of a reply: a hash of model, sampling, prompt, schema, seed and repetition."""
    return digest_of(
        {
            "identity": identity,
            "messages": [[message.role, message.content] for message in messages],
            "schema": schema,
            "seed": seed,
            "repetition": repetition,
        }
    )
