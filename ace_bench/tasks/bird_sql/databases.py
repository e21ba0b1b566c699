"""The databases of a data folder: files, checksums, schemas, BIRD's own archives of them, and gold results."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import IO
from urllib.parse import quote

import msgspec

from ace_bench.core.encoding import decoder_of, digest_of
from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.core.program import command_line
from ace_bench.store.files import replacing, write_cached
from ace_bench.tasks.bird_sql.pool import ExecutionResult, Limits, Workers
from ace_bench.tasks.data import RemoteFile, read_records, sha256_of, text_of

FOLDERS = ("databases", "dev_databases", "train_databases")
"""Folders of a data folder that may hold databases: this project's name, then those of the official archives."""

SCRIPT_BYTES = 32 << 20
_FORM = 1
"""Increase it when databases are built in another way."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Builder:
    """Builds databases from SQL scripts, once each: a complete file is used again.

    A script runs in a confined worker with the limits and the clock of a query.
    """

    def __init__(self, *, limits: Limits, clock: str) -> None:
        self._limits = limits
        self._clock = clock

    def built(self, name: str, script: Path, folder: Path) -> Path:
        """Return the SQLite file; raises ``DataError`` for a script that cannot be used."""
        text = _read_script(script)
        path = (folder / f"{name}-{digest_of([_FORM, self._clock, text])[:16]}.sqlite").resolve()
        if not _is_complete(path):
            database = self._build(script, text)
            write_cached(path, database)
            write_cached(_checksum_path(path), hashlib.sha256(database).hexdigest().encode())
        return path

    def _build(self, script: Path, text: str) -> bytes:
        workers = Workers(count=1, limits=self._limits, clock=self._clock)
        try:
            built = workers.build(text)
        except RolloutFault as error:
            raise ConfigError(error.fault.message) from error
        finally:
            workers.close()
        if built.kind == "built":
            return built.database
        why = {
            "timeout": f"it runs longer than {self._limits.timeout:g} s (task.limits.timeout)",
            "crash": f"it needs more than {self._limits.memory_mb} MB of memory (task.limits.memory_mb)",
        }
        raise DataError(
            f"{script} cannot be made into a database: {why.get(built.kind, built.message)}; "
            f"correct it, or put the database itself at {FOLDERS[0]}/{script.stem}/{script.stem}.sqlite"
        )


class Database:
    """One database: a SQLite file, or a script of SQL from which one is built into the cache.

    ``file`` is what the data folder holds, ``checksum`` its SHA-256, ``path`` the SQLite file.
    """

    def __init__(self, name: str, file: Path, *, cache: Path, builder: Builder) -> None:
        self.file = file
        self.checksum = _checksum(file, cache / "checksums")
        self.path = file.resolve() if file.suffix == ".sqlite" else builder.built(name, file, cache / "databases")

    @cached_property
    def schema(self) -> str:
        """The CREATE TABLE statements in the order of creation, with a blank line between two."""
        query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        try:
            with contextlib.closing(_connect(self.path)) as connection:
                tables = [sql.strip() for (sql,) in connection.execute(query)]
        except sqlite3.Error as error:
            raise DataError(f"{self.path} is not a SQLite database: {error}; fetch it again") from error
        if not tables:
            raise DataError(f"{self.path} holds no tables; fetch it again")
        return "\n\n".join(tables)


def find_database(name: str, folder: Path, *, cache: Path, builder: Builder) -> Database:
    """Find a database by its id in a data folder; the ``DataError`` for a missing one says where to put it."""
    candidates = [folder / parent / name / f"{name}.sqlite" for parent in FOLDERS]
    candidates.append(folder / f"{name}.sql")
    file = next((path for path in candidates if path.is_file()), None)
    if file is None:
        raise DataError(
            f"{folder} lacks the database {name}: run `{command_line('data')} bird_sql`, or put it at {candidates[0]}"
        )
    return Database(name, file, cache=cache, builder=builder)


def _checksum(file: Path, folder: Path) -> str:
    """Return the SHA-256 of a file, cached by path, size and time: the official databases have 35 GB."""
    about = file.stat()
    note = folder / digest_of([str(file.resolve()), about.st_size, about.st_mtime_ns])
    with contextlib.suppress(OSError, UnicodeDecodeError):
        known = note.read_text(encoding="ascii")
        if _SHA256.fullmatch(known):
            return known
    checksum = sha256_of(file)
    write_cached(note, checksum.encode())
    return checksum


def _read_script(file: Path) -> str:
    try:
        if file.stat().st_size > SCRIPT_BYTES:
            raise DataError(f"{file} is larger than {SCRIPT_BYTES >> 20} MB; put its database into a .sqlite file")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from error


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)


def _is_complete(path: Path) -> bool:
    """Whether a built database is complete, by its checksum: it is not opened, because its SQL is not trusted."""
    try:
        return _checksum_path(path).read_text(encoding="ascii") == sha256_of(path)
    except (OSError, UnicodeDecodeError, DataError):
        return False


def _checksum_path(path: Path) -> Path:
    return path.with_suffix(".sha256")


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The archive with the databases of a split's questions.

    The publisher gives no checksum; the archive's internal checksums show whether it is complete.
    """

    file: RemoteFile
    split: str

    def lacking(self, folder: Path) -> set[str]:
        """Return the databases that the split's questions need and that are missing in a data folder."""
        records = read_records(folder / f"{self.split}.jsonl")
        needed = {text_of(record, "db_id", where) for _, where, record in records}
        return {name for name in needed if not any((folder / at / name / f"{name}.sqlite").is_file() for at in FOLDERS)}

    def unpack(self, archive: Path, folder: Path) -> None:
        """Write the missing databases to ``databases/<name>/<name>.sqlite``, and nothing else.

        The databases may lie in an archive within the archive. Raises ``DataError`` for a broken or wrong archive.
        """
        wanted = self.lacking(folder)
        try:
            with _innermost(archive, folder) as zipped:
                for entry in zipped.infolist():
                    place = PurePosixPath(entry.filename)
                    if place.suffix == ".sqlite" and place.stem in wanted and place.parent.name == place.stem:
                        with zipped.open(entry) as source:
                            _place(source, folder / FOLDERS[0] / place.stem / place.name)
        except (zipfile.BadZipFile, EOFError) as error:
            raise DataError(
                f"{archive} is not a complete zip archive: {error}; remove it and fetch it again"
            ) from error
        missing = self.lacking(folder)
        if missing:
            raise DataError(f"{archive} lacks the databases {', '.join(sorted(missing))}; is it {self.file.name}?")


@contextmanager
def _innermost(archive: Path, folder: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive, or the one inside it whose name ends in ``databases.zip``, which is unpacked temporarily."""
    with zipfile.ZipFile(archive) as outer:
        inner = next((e for e in outer.infolist() if PurePosixPath(e.filename).name.endswith("databases.zip")), None)
        if inner is None:
            yield outer
            return
        scratch = folder / f"{archive.name}.inner"
        try:
            with outer.open(inner) as source:
                _place(source, scratch)
            with zipfile.ZipFile(scratch) as zipped:
                yield zipped
        finally:
            scratch.unlink(missing_ok=True)


def _place(source: IO[bytes], path: Path) -> None:
    with replacing(path) as target:
        shutil.copyfileobj(source, target, 1 << 20)


_LOG = logging.getLogger(__name__)
_GOLD_FORM = 3
"""Increase it when results are computed in another way."""


class Golds:
    """Gold results by database and query; safe between threads.

    The key of an entry holds the database's checksum and the time that queries see. An entry that cannot be read is
    computed again. A failure is not cached: the query may succeed on a faster machine.
    """

    def __init__(self, folder: Path, workers: Workers, *, clock: str) -> None:
        self._folder = folder
        self._clock = clock
        self._workers = workers
        self._lock = Lock()
        self._known: dict[str, ExecutionResult] = {}

    def outcome(self, database: Database, sql: str) -> ExecutionResult:
        """Return the result of a gold query; raises ``RolloutFault`` where no worker can be started."""
        key = digest_of([_GOLD_FORM, sqlite3.sqlite_version, self._clock, database.checksum, sql])
        with self._lock:
            known = self._known.get(key)
        if known is None:
            path = self._folder / key[:2] / f"{key}.json"
            known = _read(path) or self._compute(path, database, sql)
            with self._lock:
                self._known[key] = known
        return known

    def _compute(self, path: Path, database: Database, sql: str) -> ExecutionResult:
        outcome = self._workers.run(database.path, sql)
        if outcome.ran:
            write_cached(path, msgspec.json.encode(outcome))
        else:
            reason = outcome.message or outcome.kind
            _LOG.warning(
                "a gold query fails on %s (%s), so no answer to its question is right: %s", database.file, reason, sql
            )
        return outcome


def _read(path: Path) -> ExecutionResult | None:
    try:
        outcome: ExecutionResult = decoder_of(ExecutionResult).decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return outcome if outcome.ran and outcome.exact else None
