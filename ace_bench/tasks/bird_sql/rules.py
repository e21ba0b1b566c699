"""What SQL may do, and the time that it sees.

A query reads one database, a script fills a new one; everything else is refused.

All SQL sees one fixed time, so that the result of a query does not depend on the day of the run: some gold queries read
the clock (an age is the current year less the year of birth). SQLite's date functions are replaced by functions that
insert the fixed time for the current one and call SQLite for the rest. The time zone of the process is UTC, so that
``localtime`` is the same everywhere, too.

The worker imports this module, so it needs the standard library only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

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
    harmless = action == sqlite3.SQLITE_FUNCTION and (name or "").lower() in _FUNCTIONS
    return sqlite3.SQLITE_OK if harmless or action in _READING else sqlite3.SQLITE_DENY


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

    def _refuse(self, reason: str) -> int:
        self.refused = reason
        return sqlite3.SQLITE_DENY


_TIME_AT = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1, "timediff": 0}
"""Position of the time among a function's arguments; a call with fewer arguments reads the clock."""

_KEYWORDS = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_REMEMBERED = 1 << 16

Value = str | bytes | int | float | None


class FixedClock:
    """``now`` is the time in UTC, as in ``2025-10-06 00:00:00``; ``cell_bytes`` limits what a function may return."""

    def __init__(self, now: str, *, cell_bytes: int) -> None:
        os.environ["TZ"] = "UTC"
        time.tzset()
        self._now = now
        self._sqlite = sqlite3.connect(":memory:", isolation_level=None)
        self._sqlite.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, cell_bytes)
        supported = {name for (name,) in self._sqlite.execute("SELECT DISTINCT name FROM pragma_function_list")}
        # Older versions of SQLite do not have all of them.
        self._names = [name for name in _TIME_AT if name in supported]

    def fix(self, connection: sqlite3.Connection) -> None:
        """Make the date functions of a connection use the fixed time."""
        for name in self._names:
            connection.create_function(name, -1, self._fix_time(name), deterministic=True)
        for name, function in _KEYWORDS.items():
            connection.create_function(name, 0, partial(self._compute, function, (self._now,)), deterministic=True)

    def _fix_time(self, name: str) -> Callable[..., Value]:
        position, times = _TIME_AT[name], 2 if name == "timediff" else 1

        # A column of dates repeats its values, and a lookup is ten times as fast as a call of SQLite.
        @lru_cache(maxsize=_REMEMBERED, typed=True)
        def function(*arguments: Value) -> Value:
            if len(arguments) == position:
                arguments = (*arguments, "now")
            read = [value for time in arguments[position : position + times] for value in self._instead(time)]
            return self._compute(name, (*arguments[:position], *read, *arguments[position + times :]))

        return function

    def _instead(self, value: Value) -> Sequence[Value]:
        """Return the arguments that replace a time; SQLite reads it up to the first NUL, in any case and type."""
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        word = text.partition("\0")[0].lower() if isinstance(text, str) else ""
        if word == "now":
            return (self._now,)
        if word in ("subsec", "subsecond"):  # the current time with its fractions of a second
            return (self._now, word)
        return (value,)

    def _compute(self, name: str, arguments: Sequence[Value]) -> Value:
        marks = ", ".join("?" * len(arguments))
        value: Value = self._sqlite.execute(f"SELECT {name}({marks})", tuple(arguments)).fetchone()[0]
        return value
