"""The databases of a data folder: files, checksums, schemas, BIRD's own archives of them, and gold results."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import msgspec

from ace_bench.core.encoding import decoder_of, digest_of
from ace_bench.core.errors import ConfigError, DataError, RolloutFault
from ace_bench.core.program import command_line
from ace_bench.store.files import replacing, write_cached
from ace_bench.tasks.bird_sql.pool import ExecutionResult, Limits, Workers
from ace_bench.tasks.data import RemoteFile, read_records, sha256_of, text_of

FOLDERS = ("databases", "dev_databases", "train_databases")
"""Folders of a data folder that may hold databases: this project's name, then the official archives' names."""

SCRIPT_BYTES = 32 << 20
_FORM = 1
"""Increase it when databases are built in another way."""

_CHUNK = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Database:
    """The SQLite file ``path``, made from ``file`` of the data folder, which has the SHA-256 ``checksum``."""

    file: Path
    checksum: str
    path: Path

    @cached_property
    def schema(self) -> str:
        """The CREATE TABLE statements in the order of creation, with a blank line between two."""
        query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        target = f"file:{quote(str(self.path))}?mode=ro&immutable=1"
        try:
            with contextlib.closing(sqlite3.connect(target, uri=True)) as connection:
                tables = [sql.strip() for (sql,) in connection.execute(query)]
        except sqlite3.Error as error:
            raise DataError(f"{self.path} is not a SQLite database: {error}; fetch it again") from error
        if not tables:
            raise DataError(f"{self.path} holds no tables; fetch it again")
        return "\n\n".join(tables)


@dataclass(frozen=True, kw_only=True)
class DatabaseFinder:
    """Finds the databases of a data folder: SQLite files, or scripts of SQL from which they are built into the cache.

    A script runs in a confined worker with the limits and the clock of a query, once: a complete file is used again.
    """

    folder: Path
    cache: Path
    limits: Limits
    clock: str

    def find(self, name: str) -> Database:
        """Find a database by its id; the ``DataError`` for a missing or wrong one says what to do."""
        candidates = [self.folder / parent / name / f"{name}.sqlite" for parent in FOLDERS]
        candidates.append(self.folder / f"{name}.sql")
        file = next((path for path in candidates if path.is_file()), None)
        if file is None:
            raise DataError(
                f"{self.folder} lacks the database {name}: run `{command_line('data')} bird_sql`, "
                f"or put it at {candidates[0]}"
            )
        checksum = _checksum(file, self.cache / "checksums")
        path = file.resolve() if file.suffix == ".sqlite" else self._built(name, file)
        return Database(file=file, checksum=checksum, path=path)

    def _built(self, name: str, script: Path) -> Path:
        text = _read_script(script)
        digest = digest_of([_FORM, self.clock, text])[:16]
        path = (self.cache / "databases" / f"{name}-{digest}.sqlite").resolve()
        note = path.with_suffix(".sha256")
        with contextlib.suppress(OSError, UnicodeDecodeError, DataError):
            if note.read_text(encoding="ascii") == sha256_of(path):  # it is not opened: its SQL is not trusted
                return path
        database = self._build(script, text)
        write_cached(path, database)
        write_cached(note, hashlib.sha256(database).hexdigest().encode())
        return path

    def _build(self, script: Path, text: str) -> bytes:
        with contextlib.closing(Workers(count=1, limits=self.limits, clock=self.clock)) as workers:
            try:
                built = workers.build(text)
            except RolloutFault as error:
                raise ConfigError(error.fault.message) from error
        if built.kind == "built":
            return built.database
        why = {
            "timeout": f"it runs longer than {self.limits.timeout:g} s (task.timeout)",
            "crash": f"it needs more than {self.limits.memory_mb} MB of memory",
        }
        raise DataError(
            f"{script} cannot be made into a database: {why.get(built.kind, built.message)}; "
            f"correct it, or put the database itself at {FOLDERS[0]}/{script.stem}/{script.stem}.sqlite"
        )


def _checksum(file: Path, folder: Path) -> str:
    """Return the SHA-256 of a file, cached by path, size and time: the official databases have 35 GB."""
    status = file.stat()
    note = folder / digest_of([str(file.resolve()), status.st_size, status.st_mtime_ns])
    with contextlib.suppress(OSError, UnicodeDecodeError):  # it is computed again
        recorded = note.read_text(encoding="ascii")
        if _SHA256.fullmatch(recorded):
            return recorded
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


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The archive with the databases of a split's questions.

    The publisher gives no checksum; the archive's internal checksums show whether it is complete.
    """

    file: RemoteFile
    split: str

    def find_missing(self, folder: Path) -> set[str]:
        """Return the databases that the split's questions need and that are missing in a data folder."""
        records = read_records(folder / f"{self.split}.jsonl")
        needed = {text_of(record, "db_id", where) for _, where, record in records}
        paths = {name: [folder / parent / name / f"{name}.sqlite" for parent in FOLDERS] for name in needed}
        return {name for name in needed if not any(path.is_file() for path in paths[name])}

    def unpack(self, archive: Path, folder: Path) -> None:
        """Write the missing databases to ``databases/<name>/<name>.sqlite``, and nothing else.

        The databases may lie in an archive within the archive. Raises ``DataError`` for a broken or wrong archive.
        """
        wanted = self.find_missing(folder)
        try:
            with _innermost(archive, folder) as zipped:
                for entry in zipped.infolist():
                    member = PurePosixPath(entry.filename)
                    if member.suffix == ".sqlite" and member.stem in wanted and member.parent.name == member.stem:
                        path = folder / FOLDERS[0] / member.stem / member.name
                        with zipped.open(entry) as source, replacing(path) as target:
                            shutil.copyfileobj(source, target, _CHUNK)
        except (zipfile.BadZipFile, EOFError) as error:
            raise DataError(
                f"{archive} is not a complete zip archive: {error}; remove it and fetch it again"
            ) from error
        missing = self.find_missing(folder)
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
        with tempfile.TemporaryFile(dir=folder) as scratch:
            with outer.open(inner) as source:
                shutil.copyfileobj(source, scratch, _CHUNK)
            with zipfile.ZipFile(scratch) as zipped:
                yield zipped


_LOG = logging.getLogger(__name__)
_GOLD_FORM = 3
"""Increase it when results are computed in another way."""


def gold_result(database: Database, sql: str, *, workers: Workers, clock: str, folder: Path) -> ExecutionResult:
    """Return the result of a gold query, kept in a file of ``folder``; raises ``RolloutFault`` if no worker can start.

    The key of a file holds the database's checksum and the time that queries see. A file that cannot be read is made
    again. A failure has no file: the query may succeed on a faster machine.
    """
    key = digest_of([_GOLD_FORM, sqlite3.sqlite_version, clock, database.checksum, sql])
    path = folder / key[:2] / f"{key}.json"
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        cached: ExecutionResult = decoder_of(ExecutionResult).decode(path.read_bytes())
        if cached.ran and cached.exact:
            return cached
    outcome = workers.run(database.path, sql)
    if outcome.ran:
        write_cached(path, msgspec.json.encode(outcome))
    else:
        reason = outcome.message or outcome.kind
        _LOG.warning(
            "a gold query fails on %s (%s), so no answer to its question is right: %s", database.file, reason, sql
        )
    return outcome
