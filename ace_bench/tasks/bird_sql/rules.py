"""What SQL may do: a query reads one database, a script fills a new one. Everything else is refused.

The worker imports this module, so it needs the standard library only.
"""

from __future__ import annotations

import sqlite3

_FUNCTIONS = frozenset(
    """
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos cosh count
    cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format
    glob group_concat hex if ifnull iif instr json json_array json_array_length json_error_position
    json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood likely
    ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank percentile pi pow
    power printf quote radians random randomblob rank replace round row_number rtrim sign sin sinh soundex
    sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof
    unhex unicode unixepoch unlikely upper zeroblob -> ->>
    """.split()  # noqa: SIM905 - a hundred words
)

_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

_MAKING = _READING | {
    getattr(sqlite3, f"SQLITE_{action}")
    for action in (
        *(f"{verb}_{kind}" for verb in ("CREATE", "DROP") for kind in ("INDEX", "TABLE", "TRIGGER", "VIEW")),
        *(f"{verb}_TEMP_{kind}" for verb in ("CREATE", "DROP") for kind in ("INDEX", "TABLE", "TRIGGER", "VIEW")),
        *("INSERT", "UPDATE", "DELETE", "ALTER_TABLE", "REINDEX", "ANALYZE", "TRANSACTION", "SAVEPOINT"),
    )
}
_REPEATABLE = _FUNCTIONS - {"random", "randomblob"}
"""Functions for scripts, which must give the same database on every machine."""
_RENAMING = ("sqlite_rename_", "sqlite_drop_column")
"""Functions that SQLite itself calls for ALTER TABLE; queries cannot call them."""

_REFUSED = {
    sqlite3.SQLITE_ATTACH: "ATTACH or VACUUM",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    sqlite3.SQLITE_DROP_VTABLE: "DROP TABLE of a virtual table",
}
_PRAGMAS = frozenset({"foreign_keys", "defer_foreign_keys", "encoding", "user_version", "application_id"})
_TUNING = frozenset(
    {"journal_mode", "synchronous", "cache_size", "temp_store", "locking_mode", "mmap_size", "page_size", "auto_vacuum"}
)
"""Performance settings at the beginning of dumps: ignored, because the database is built in memory."""


def authorize_query(action: int, _: str | None, name: str | None, *__: str | None) -> int:
    """Allow a query to read and to call harmless functions."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if name is not None and name.lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


class ScriptRules:
    """An authorizer that lets a script fill its database; ``refused`` names what it last refused, or is ""."""

    def __init__(self) -> None:
        self.refused = ""

    def __call__(self, action: int, first: str | None, name: str | None, *_: str | None) -> int:
        """Decide on one action as SQLite asks for it."""
        if action in _MAKING:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            called = (name or "").lower()
            if called in _REPEATABLE or called.startswith(_RENAMING):
                return sqlite3.SQLITE_OK
            return self._refuse(f"the function {called}")
        if action == sqlite3.SQLITE_PRAGMA:
            setting = (first or "").lower()
            if setting in _TUNING:
                return sqlite3.SQLITE_IGNORE
            return sqlite3.SQLITE_OK if setting in _PRAGMAS else self._refuse(f"PRAGMA {setting}")
        return self._refuse(_REFUSED.get(action, f"action {action} of SQLite"))

    def _refuse(self, what: str) -> int:
        self.refused = what
        return sqlite3.SQLITE_DENY
