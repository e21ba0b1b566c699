"""One fixed time for all SQL, so that the result of a query does not depend on the day of the run.

Some gold queries read the clock (an age is the current year less the year of birth). SQLite's date functions are
replaced by functions that insert the fixed time for the current one and call SQLite for the rest. The time zone of the
process is UTC, so that ``localtime`` is the same everywhere, too.

The worker imports this module, so it needs the standard library only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

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
        known = {name for (name,) in self._sqlite.execute("SELECT DISTINCT name FROM pragma_function_list")}
        self._names = [name for name in _TIME_AT if name in known]  # older versions of SQLite do not have all of them

    def fix(self, connection: sqlite3.Connection) -> None:
        """Make the date functions of a connection use the fixed time."""
        for name in self._names:
            connection.create_function(name, -1, self._fixed(name), deterministic=True)
        for name, function in _KEYWORDS.items():
            connection.create_function(name, 0, partial(self._compute, function, (self._now,)), deterministic=True)

    def _fixed(self, name: str) -> Callable[..., Value]:
        place, times = _TIME_AT[name], 2 if name == "timediff" else 1

        # A column of dates repeats its values, and a lookup is ten times as fast as a call of SQLite.
        @lru_cache(maxsize=_REMEMBERED, typed=True)
        def function(*given: Value) -> Value:
            if len(given) == place:
                given = (*given, "now")
            read = [value for time in given[place : place + times] for value in self._instead(time)]
            return self._compute(name, (*given[:place], *read, *given[place + times :]))

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
