"""What the SQLite files that runs share have in common."""

from __future__ import annotations

import sqlite3
import time

_AGAIN_S = 0.05


def use_write_ahead_log(connection: sqlite3.Connection, patience_s: float) -> None:
    """Let a file be read while it is written; raises ``sqlite3.Error``.

    Of two processes that ask this of a new file at once, SQLite refuses one without waiting, whatever the timeout of
    its connection.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_AGAIN_S)
