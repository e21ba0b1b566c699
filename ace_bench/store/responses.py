"""The response cache: replies shared between runs, by everything that decides them (optional)."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import StoreError
from ace_bench.core.types import NO_USAGE, Completion, Message, Record

_log = logging.getLogger(__name__)

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL)"
_CHECKED = "ALTER TABLE replies ADD COLUMN checksum INTEGER"  # caches of earlier versions have none
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED_S = 5.0
"""How long another program may keep the file locked before a run goes on without the cache."""
_LOOK_S, _PATIENCE_S = 0.5, 600.0
"""How often a call that waits for another run's reply looks for a stop, and when it pays for one itself."""


class Responses:
    """A SQLite file in a folder of the user's choosing; several runs may use it at once.

    A reply taken from it costs nothing, so it carries no usage and no latency and is marked ``replayed``. Nothing
    that happens to the file stops a run: a damaged one is set aside, and where it cannot be used any more the run goes
    on without it; a warning says so.
    """

    def __init__(self, folder: Path):
        """Open or create the cache; raises ``StoreError`` where the folder cannot hold one."""
        self._path = folder / "responses.sqlite"
        self._claims = folder / "under_way"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            self._claims.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as error:
            if not _is(error, _BUSY):
                raise StoreError(f"response_cache={folder} cannot be used ({error}); choose another folder") from error
            self._go_without(error)

    @contextmanager
    def claimed(self, key: str, check: Callable[[], None]) -> Iterator[None]:
        """Be the only one, of all runs and threads, to look for a reply and pay for it where there is none.

        The claim ends with its process, however that ends. ``check`` is called now and then while others hold it.
        """
        lock = FileLock(self._claims / key)
        until = time.monotonic() + _PATIENCE_S
        try:
            while self._connection is not None and not lock.is_locked and time.monotonic() < until:
                try:
                    lock.acquire(timeout=_LOOK_S)
                except Timeout:
                    check()
        except OSError as error:
            with self._lock:
                self._go_without(error)
        try:
            yield
        finally:
            if lock.is_locked:
                with suppress(OSError):  # whoever waits for it finds that it is gone, and makes another
                    Path(lock.lock_file).unlink()
                lock.release()

    def find(self, key: str) -> Completion | None:
        """Return the reply of a key, if any run has paid for it."""
        row = self._execute("SELECT model, text, checksum FROM replies WHERE key = ?", (key,))
        if row is None:
            return None
        model, text, checksum = row
        if checksum not in (None, _checksum(model, text)):
            _log.warning("%s: a damaged reply is left out and paid for again", self._path)
            self._execute("DELETE FROM replies WHERE key = ?", (key,))
            return None
        return Completion(text=text, usage=NO_USAGE, seconds=0.0, model=model, replayed=True)

    def add(self, key: str, completion: Completion) -> None:
        """Keep a reply; the first one of a key stays."""
        values = (key, completion.model, completion.text, _checksum(completion.model, completion.text))
        self._execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Run a statement and return its first row; a second time, with an empty file, where the file is damaged."""
        with self._lock:
            for _ in range(2):
                if self._connection is None:
                    return None
                try:
                    row: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
                    return row
                except sqlite3.Error as error:
                    if not _is(error, _DAMAGED) or not self._renewed(error):
                        self._go_without(error)
        return None

    def _open(self) -> None:
        self._file = _inode(self._path)
        try:
            self._connection = self._connected()
        except sqlite3.Error as error:
            if not _is(error, _DAMAGED):
                raise
            self._set_aside(error)
            self._connection = self._connected()
        self._file = _inode(self._path)

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, timeout=_LOCKED_S, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # a checksum tells what is damaged
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_TABLE)
            if len(connection.execute("PRAGMA table_info(replies)").fetchall()) == 3:
                connection.execute(_CHECKED)
        except BaseException:
            connection.close()
            raise
        return connection

    def _renewed(self, error: sqlite3.Error) -> bool:
        self._close()
        try:
            self._set_aside(error)
            self._open()
        except (OSError, sqlite3.Error):  # a lock that is not to be had is an OSError, too
            return False
        return True

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Rename the damaged file, unless another run that saw the damage has done so already."""
        with FileLock(self._path.with_suffix(".lock"), timeout=_LOCKED_S):
            if _inode(self._path) != self._file:
                return
            aside = self._path.with_name(f"damaged-{time.time_ns()}.sqlite")
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        _log.warning(
            "%s is damaged (%s); it was set aside as %s and replies are paid for anew", self._path, error, aside
        )

    def _go_without(self, error: Exception) -> None:
        _log.warning("%s cannot be used (%s); this run goes on without the response cache", self._path, error)
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def _is(error: Exception, codes: Sequence[int]) -> bool:
    """Whether an error has one of SQLite's primary codes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _checksum(model: str, text: str) -> int:
    return zlib.crc32(f"{model}\n{text}".encode())


def response_key(
    identity: Record, messages: Sequence[Message], *, schema: Record | None, seed: int, repetition: int
) -> str:
    """Content address of a reply: model and sampling, prompt, schema, seed, and how often this was asked before."""
    return digest_of(
        {
            "identity": identity,
            "messages": [[message.role, message.content] for message in messages],
            "schema": schema,
            "seed": seed,
            "repetition": repetition,
        }
    )
