"""The vector store: embeddings that runs share, so that no text is embedded twice by one model (optional).

It only keeps. Searching is exact, over the vectors of a playbook in memory (``playbook.embeddings``). It is SQLite,
because Qdrant's local mode admits one process at a time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ace_bench.core.errors import StoreError
from ace_bench.store.files import PRIVATE, disk_problem, make_folders
from ace_bench.store.sqlite_files import use_write_ahead_log

FILE = "vectors.sqlite"
_TABLE = """
CREATE TABLE IF NOT EXISTS vectors
    (embedder TEXT, text TEXT, vector BLOB, checksum INTEGER, PRIMARY KEY (embedder, text)) STRICT
"""
_FIND = "SELECT text, vector, checksum FROM vectors WHERE embedder = ? AND text IN (SELECT value FROM json_each(?))"
_ANY = "SELECT length(vector) FROM vectors WHERE embedder = ? LIMIT 1"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED_S = 30.0
"""How long another program may keep the file locked."""


def text_key(text: str) -> str:
    """Return the key of a text: 128 bits of its SHA-256. Half surrogate pairs count as they are sent."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]


class VectorStore:
    """A SQLite file in a folder that the user chooses. Several threads, runs and processes may use it at once.

    Vectors are 32-bit floats, little-endian, by the identity of their embedder and the key of their text. A model that
    changes its identity starts anew. What a process was writing when it was killed is absent, not half there.
    """

    def __init__(self, folder: Path, mode: int = PRIVATE):
        """Open or create the store; raises ``StoreError`` if it is damaged or cannot be written.

        ``mode`` applies to new folders, less what the umask takes.
        """
        self._folder = folder
        self._path = folder / FILE
        self._lock = threading.Lock()
        try:
            make_folders(folder, mode)
        except OSError as error:
            raise StoreError(disk_problem(error, folder, elsewhere="choose another vector_store")) from error
        with self._using():
            self._connection = sqlite3.connect(self._path, check_same_thread=False, timeout=_LOCKED_S)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def find(self, embedder: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the vectors that are kept, by key; raises ``StoreError``."""
        with self._using():
            rows = self._connection.execute(_FIND, (embedder, json.dumps(keys))).fetchall()
        for key, vector, checksum in rows:  # a file of another program may hold texts
            if not isinstance(vector, bytes) or checksum != _checksum(embedder, key, vector):
                raise StoreError(self._damage("a vector differs from its checksum"))
        return {key: vector for key, vector, _ in rows}

    def add(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, all or none. The first of a key stays.

        Raises ``StoreError``, also for vectors that are not as long as those that the embedder gave before.
        """
        new = [(embedder, key, vector, _checksum(embedder, key, vector)) for key, vector in vectors.items()]
        with self._using(), self._connection:
            kept = self._connection.execute(_ANY, (embedder,)).fetchone()
            sizes = {len(vector) // 4 for vector in vectors.values()} | ({kept[0] // 4} if kept else set())
            if len(sizes) > 1:
                raise StoreError(
                    f"vector_store={self._folder} has vectors of {kept[0] // 4} numbers by {embedder!r}, which now "
                    "gives others: it is another model of the same name; choose another vector_store"
                )
            self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", new)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _prepare(self) -> None:
        use_write_ahead_log(self._connection, _LOCKED_S)
        self._connection.execute("PRAGMA synchronous=NORMAL")
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")  # fails where nothing can be written
            self._connection.execute(_TABLE)

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                    raise StoreError(self._damage(str(error))) from error
                raise StoreError(
                    f"vector_store={self._folder} cannot be used ({error}): let no other program lock it, make it "
                    "writable, or choose another folder"
                ) from error

    def _damage(self, cause: str) -> str:
        return f"{self._path} is damaged ({cause}): delete {self._path}*, and its texts are embedded again"


def _checksum(embedder: str, key: str, vector: bytes) -> int:
    return zlib.crc32(f"{embedder}\n{key}\n".encode() + vector)
