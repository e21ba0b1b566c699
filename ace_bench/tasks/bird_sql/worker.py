"""The process that runs SQL of a model: a request per line on stdin, a result per line on stdout.

The query is treated as hostile. It sees one database, opened read-only and immutable; an authorizer lets it read
and call harmless functions, and nothing else; time, rows, cells, nesting and memory are limited. In
addition, the process itself can read only the databases, write no file and reach no network, as far as the kernel
supports it (see ``confine``). SQLite does not call the progress handler everywhere, for example not in a LIKE pattern
with many wildcards; there an alarm of the operating system ends this process. It also exits when its parent has died.

Rows never leave the process: results are compared by digests, so the size of a result does not matter.

Databases are built from a data folder's scripts here, too, because these are not trusted either.

This file is started by its path, with the folder to import ``ace_bench`` from: it and what it imports need nothing but
the standard library.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

if __name__ == "__main__":
    sys.path = [sys.argv[1], os.path.dirname(os.path.dirname(__file__)), *sys.path]
from ace_bench.core.confine import Bounds, confine
from ace_bench.tasks.bird_sql.rules import FixedClock, ScriptRules, authorize_query

PREVIEW_ROWS, PREVIEW_CHARS = 3, 60
MESSAGE_CHARS = 300
DATABASE_BYTES = 64 << 20
"""Largest database that a script may build; a larger one has to be a .sqlite file."""

_STEPS = 20_000
"""SQLite's machine steps between two checks of the time: about a millisecond."""

_PAGE_BYTES = 4096
"""SQLite's default page size, which scripts cannot change."""
_SQL_BYTES = 100_000
_DIGITS = 12
"""Significant digits of a real number in the lenient comparison."""


def main() -> None:
    """Answer requests until stdin ends."""
    settings: dict[str, Any] = json.loads(sys.argv[2])
    limits, clock = settings["limits"], FixedClock(settings["clock"], cell_bytes=settings["limits"]["cell_bytes"])
    parent = os.getppid()
    layers = _confine(settings["readable"], limits["memory_mb"] << 20)
    _send({"layers": layers})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, 1.2 * limits["timeout"] + 0.5)  # the progress handler comes first
        outcome = Run(limits, clock, parent).answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(outcome)


def _confine(readable_paths: Sequence[str], memory: int) -> list[str]:
    """Take from this process what no query needs: other files, the network, much memory, writing files."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, wherever it is
    # The user stays: another one may be unable to read the databases.
    bounds = Bounds(folder="", readable=[*readable_paths, "/dev/urandom"], uid=None, memory=memory)
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # some systems have no such limit
            resource.setrlimit(kind, (most, most))
    return confine(bounds) if sys.platform == "linux" else []


def _send(reply: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
    sys.stdout.buffer.flush()


class Run:
    """Runs one query, or one script that builds a database; every error becomes a result."""

    def __init__(self, limits: Mapping[str, Any], clock: FixedClock, parent: int) -> None:
        self.limits = limits
        self._clock = clock
        self._parent = parent
        self._deadline: float = time.monotonic() + limits["timeout"]
        self._late = False
        self.utf8 = True

    def answer(self, request: Mapping[str, str]) -> dict[str, Any]:
        """Run the request and return its result."""
        work = partial(_build, request["script"]) if "script" in request else partial(_query, request)
        try:
            outcome = work(self)
        except MemoryError:
            return _outcome("error", "out of memory")
        except Exception as error:  # whatever the SQL caused: this process must go on
            return _outcome("timeout", "") if self._late else _outcome("error", str(error)[:MESSAGE_CHARS])
        return _outcome("timeout", "") if self.stop() else outcome

    def stop(self) -> bool:
        """Return whether the time is over; SQLite's progress handler."""
        if os.getppid() != self._parent:
            os._exit(1)
        self._late = time.monotonic() > self._deadline
        return self._late

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            self.utf8 = False
            return text.decode("utf-8", "surrogateescape")  # compared by its bytes

    def connect(self, target: str, authorizer: Callable[..., int], *, pragma: str, **limits: int) -> sqlite3.Connection:
        """Connect to a database with the limits and the clock that hold for all SQL."""
        connection = sqlite3.connect(target, uri=True, isolation_level=None)
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA {pragma}")
        connection.text_factory = self._decode
        self._clock.fix(connection)
        most = {
            "LENGTH": self.limits["cell_bytes"],
            "EXPR_DEPTH": self.limits["depth"],
            "ATTACHED": 0,
            "LIKE_PATTERN_LENGTH": 1_000,
            "WORKER_THREADS": 0,
            **limits,
        }
        for name, value in most.items():
            connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), value)
        connection.set_progress_handler(self.stop, _STEPS)
        connection.set_authorizer(authorizer)
        return connection


def _query(request: Mapping[str, str], run: Run) -> dict[str, Any]:
    target = f"file:{quote(request['database'])}?mode=ro&immutable=1"
    limits = {"SQL_LENGTH": _SQL_BYTES, "COMPOUND_SELECT": 100}
    with contextlib.closing(run.connect(target, authorize_query, pragma="query_only = ON", **limits)) as connection:
        cursor = connection.execute(request["sql"])
        if cursor.description is None:
            return {"kind": "none", "exact": _join_digests(())}
        return {**_collect(cursor, run.limits["rows"]), "utf8": run.utf8}


def _build(script: str, run: Run) -> dict[str, Any]:
    """Build a database in memory; only its bytes leave this process."""
    rules, most = ScriptRules(), f"max_page_count = {DATABASE_BYTES // _PAGE_BYTES}"
    with contextlib.closing(run.connect(":memory:", rules, pragma=most)) as connection:
        try:
            connection.executescript(script)
        except sqlite3.Error as error:
            if rules.refused:
                return _outcome("error", f"it uses {rules.refused}, which a script may not")
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                return _outcome("error", f"it makes a database of more than {DATABASE_BYTES >> 20} MB")
            raise
        if connection.in_transaction:
            return _outcome("error", "its last transaction has no COMMIT")
        connection.set_authorizer(None)  # serializing asks for the number of pages by a PRAGMA
        if not connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0]:
            return _outcome("error", "it makes no tables")
        return {"kind": "built", "database": base64.b64encode(connection.serialize()).decode()}


def _collect(cursor: sqlite3.Cursor, most: int) -> dict[str, Any]:
    """Read all rows and return three digests: of the set, and of set and sequence with rounded reals."""
    exact: dict[bytes, None] = {}
    close: dict[bytes, None] = {}
    preview: list[str] = []
    count = 0
    for count, row in enumerate(itertools.islice(cursor, most + 1), start=1):
        if count <= PREVIEW_ROWS:
            preview.append(_show_row(row))
        digest = _digest(row)
        exact[digest] = None
        reals = any(isinstance(cell, float) for cell in row)
        close[_digest([_round_reals(cell) for cell in row]) if reals else digest] = None
    if count > most:
        return _outcome("error", f"more than {most} rows")
    return {
        "kind": "rows",
        "rows": count,
        "columns": len(cursor.description),
        "preview": preview,
        "exact": _join_digests(sorted(exact)),
        "close": _join_digests(sorted(close)),
        "ordered": _join_digests(close),
    }


def _digest(row: Sequence[Any]) -> bytes:
    cells = b"".join(b"%d:%b" % (len(cell), cell) for cell in map(_cell, row))
    return hashlib.blake2b(cells, digest_size=16).digest()


def _cell(value: Any) -> bytes:
    """Encode a cell so that equal encodings mean equality in Python, which the official code uses."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return b"t" + value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return b"b" + value
    return b"n" + repr(value).encode()


def _round_reals(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) and not value.is_integer() else value


def _join_digests(digests: Any) -> str:
    joined = hashlib.blake2b(digest_size=16)
    for digest in digests:
        joined.update(digest)
    return joined.hexdigest()


def _show_row(row: Sequence[Any]) -> str:
    cells = (repr(cell[:PREVIEW_CHARS] if isinstance(cell, str | bytes) else cell) for cell in row[:20])
    return ", ".join(cell if len(cell) <= PREVIEW_CHARS else f"{cell[:PREVIEW_CHARS]}..." for cell in cells)


def _outcome(kind: str, message: str) -> dict[str, Any]:
    message = message.encode(errors="backslashreplace").decode()  # half a surrogate pair is not valid JSON
    return {"kind": kind, "message": message}


if __name__ == "__main__":
    main()
