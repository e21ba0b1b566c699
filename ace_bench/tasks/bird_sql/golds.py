"""Outcomes of gold queries: each is run once per database and kept in the user's cache."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from threading import Lock

import msgspec

from ace_bench.core.digest import digest_of
from ace_bench.core.typed import decoder_of
from ace_bench.store.caching import write_whole
from ace_bench.tasks.bird_sql.databases import Database
from ace_bench.tasks.bird_sql.outcomes import ExecutionResult
from ace_bench.tasks.bird_sql.pool import Workers

_LOG = logging.getLogger(__name__)
_FORM = 2
"""Goes up when outcomes are computed in another way."""


class Golds:
    """Gold outcomes by database and query; safe between threads.

    An entry names the database by its checksum, and the time that queries see. One that cannot be read is made anew. A
    gold query that fails is not kept beyond this run: another machine may be faster.
    """

    def __init__(self, folder: Path, workers: Workers, *, clock: str) -> None:
        self._folder = folder
        self._clock = clock
        self._workers = workers
        self._lock = Lock()
        self._known: dict[str, ExecutionResult] = {}

    def outcome(self, database: Database, sql: str) -> ExecutionResult:
        """Return what the gold query gives; raises ``RolloutFault`` where no worker can be started."""
        key = digest_of([_FORM, sqlite3.sqlite_version, self._clock, database.checksum, sql])
        with self._lock:
            known = self._known.get(key)
        if known is None:
            path = self._folder / key[:2] / f"{key}.json"
            known = _read(path) or self._made(path, database, sql)
            with self._lock:
                self._known[key] = known
        return known

    def _made(self, path: Path, database: Database, sql: str) -> ExecutionResult:
        outcome = self._workers.run(database.path, sql)
        if outcome.ran:
            write_whole(path, msgspec.json.encode(outcome))
        else:
            reason = outcome.message or outcome.kind
            _LOG.warning("no answer can match a gold query that fails on %s (%s): %s", database.file, reason, sql)
        return outcome


def _read(path: Path) -> ExecutionResult | None:
    try:
        outcome: ExecutionResult = decoder_of(ExecutionResult).decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return outcome if outcome.ran and outcome.exact else None
