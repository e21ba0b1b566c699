"""Results of gold queries: each query is run once per database and its result is kept in the user's cache."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from threading import Lock

import msgspec

from ace_bench.core.digest import digest_of
from ace_bench.core.typed import decoder_of
from ace_bench.store.caching import write_cached
from ace_bench.tasks.bird_sql.databases import Database
from ace_bench.tasks.bird_sql.outcomes import ExecutionResult
from ace_bench.tasks.bird_sql.pool import Workers

_LOG = logging.getLogger(__name__)
_FORM = 2
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
        key = digest_of([_FORM, sqlite3.sqlite_version, self._clock, database.checksum, sql])
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
