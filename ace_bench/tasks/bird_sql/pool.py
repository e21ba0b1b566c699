"""Long-lived processes that run queries; ours, because the workers of library pools are not confined and send pickles.

A worker that hangs or dies is replaced. Here are also the results of queries: what a model sees, when two are the same.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import LifoQueue
from typing import TypeVar

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import RolloutFault
from ace_bench.core.resources import import_folder
from ace_bench.core.settings import Seconds
from ace_bench.core.types import Fault
from ace_bench.tasks.bird_sql import worker


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one query: seconds, rows, bytes of a cell, nesting of expressions, memory of its process."""

    timeout: Seconds
    rows: int = 1_000_000
    cell_bytes: int = 10_000_000
    depth: int = 200
    memory_mb: int = 1024


NO_QUERY = "There is no query in the answer."


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a query ended: ``kind`` is rows, none (no query), error, timeout or crash.

    Digests of the rows: ``exact`` of their set, ``close`` of the set with reals at 12 digits, ``ordered`` of that set
    in order of appearance. They are "" without rows to compare. A text without a query has the ``exact`` of an empty
    result. ``utf8`` is true if all its text is UTF-8.
    """

    kind: str
    message: str = ""
    rows: int = 0
    columns: int = 0
    preview: tuple[str, ...] = ()
    exact: str = ""
    close: str = ""
    ordered: str = ""
    utf8: bool = True

    @property
    def ran(self) -> bool:
        """Whether the query gave a result, even an empty one."""
        return self.kind == "rows"

    def same(self, gold: ExecutionResult) -> bool:
        """Equal as sets of rows, and never right where a result is empty."""
        return self.rows > 0 and self.exact == gold.exact

    def same_python(self, gold: ExecutionResult) -> bool:
        """BIRD's rule: the sets of rows that Python reads are equal.

        Text that is not UTF-8 cannot be read, and a text without a query, such as a comment, reads no rows.
        """
        return gold.ran and gold.utf8 and self.utf8 and self.exact == gold.exact

    def same_corrected(self, gold: ExecutionResult, *, ordered: bool) -> bool:
        """Corrected rule: empty equals empty, reals at 12 digits, row order where the gold query has an ORDER BY."""
        return gold.ran and (self.ordered == gold.ordered if ordered else self.close == gold.close)

    def observed(self, limits: Limits) -> str:
        """Return what the environment shows of the query."""
        without_result = {
            "timeout": f"The query was stopped: it ran longer than {limits.timeout:g} seconds.",
            "crash": "The query was stopped: it brought down the process that ran it.",
            "none": NO_QUERY,
            "error": f"The query failed: {self.message}",
        }
        if not self.ran:
            return without_result[self.kind]
        if not self.rows:
            return "The query ran and returned no rows."
        size = f"{_plural(self.rows, 'row')} of {_plural(self.columns, 'column')}"
        rows = "\n".join(self.preview)
        return f"The query returned {size}. First rows:\n{rows}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_TRIES = 2
"""A query is run again after a crash: something else may have killed the worker."""

_ENVIRONMENT = {"LANG": "C.UTF-8"}
"""All environment variables of a worker: the user's may hold keys."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a script: ``kind`` is built, error, timeout or crash; ``database`` is the SQLite file."""

    kind: str
    message: str = ""
    database: bytes = b""


Ended = TypeVar("Ended", ExecutionResult, Built)


class Workers:
    """At most ``count`` processes, started when needed; safe between threads.

    They can read ``databases`` and see the time ``clock`` (UTC, as in ``2025-10-06 00:00:00``). ``layers`` are what
    confines the worker started last (see ``core.confine``), ``None`` before the first. A worker exits when its pipe to
    this process breaks, so none outlives a killed parent.
    """

    def __init__(self, *, count: int, limits: Limits, clock: str, databases: Sequence[Path] = ()) -> None:
        self.limits = limits
        settings = {"limits": limits, "clock": clock, "readable": [str(path) for path in databases]}
        self._settings = msgspec.json.encode(settings).decode()
        self._idle: LifoQueue[subprocess.Popen[bytes] | None] = LifoQueue()
        for _ in range(count):
            self._idle.put(None)
        self._alive: set[subprocess.Popen[bytes]] = set()
        self.layers: Sequence[str] | None = None
        self._finalizer = weakref.finalize(self, _end_all, self._alive)

    def check(self) -> None:
        """Check that a worker can be started; raises ``RolloutFault``."""
        with self._worker():
            pass

    def run(self, database: Path, sql: str) -> ExecutionResult:
        """Run one query, waiting for a free worker first; raises ``RolloutFault`` if none can be started."""
        return self._ask({"database": str(database), "sql": sql}, ExecutionResult)

    def build(self, script: str) -> Built:
        """Build a database from an SQL script; raises ``RolloutFault`` if no worker can be started."""
        return self._ask({"script": script}, Built)

    def _ask(self, request: Mapping[str, str], form: type[Ended]) -> Ended:
        """Return the reply of a worker, or how the SQL ended without one."""
        line = json.dumps(request).encode() + b"\n"
        for _ in range(_TRIES):
            with self._worker() as process:
                reply = _exchange(process, line)
                if reply:
                    ended: Ended = decoder_of(form).decode(reply)
                    return ended
                if process.wait() == -signal.SIGALRM:
                    return form(kind="timeout")
        return form(kind="crash")

    def close(self) -> None:
        """End all workers; a later query starts new ones."""
        _end_all(self._alive)

    @contextlib.contextmanager
    def _worker(self) -> Iterator[subprocess.Popen[bytes]]:
        process = self._idle.get()
        try:
            if process is not None and process.poll() is not None:
                self._discard(process)
                process = None
            process = process or self._start()
            yield process
        except BaseException:  # Ctrl-C may leave a reply in the pipe that belongs to no later query
            if process is not None:
                self._discard(process)
                process = None
            raise
        finally:
            self._idle.put(process)

    def _discard(self, process: subprocess.Popen[bytes]) -> None:
        self._alive.discard(process)
        _kill(process)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", worker.__file__, str(import_folder()), self._settings]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is handled by the run, which ends its workers
            )
        except OSError as error:
            raise _no_worker(error.strerror or str(error)) from error
        self._alive.add(process)
        ready = _exchange(process, b"")
        if not ready:
            self._discard(process)
            raise _no_worker(f"it ended with status {process.returncode} before its first query")
        self.layers = json.loads(ready)["layers"]
        return process


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Send a request and return the reply line; empty where the process has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.flush()
        reply = process.stdout.readline()
    except (OSError, ValueError):  # a broken pipe, or one that ``close`` has closed
        return b""
    return reply if reply.endswith(b"\n") else b""


def _no_worker(why: str) -> RolloutFault:
    message = f"the process that runs queries cannot be started: {why}; free memory"
    return RolloutFault(Fault(owner="task", kind="sql_worker", message=message))


def _end_all(processes: set[subprocess.Popen[bytes]]) -> None:
    while processes:
        _kill(processes.pop())


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # unwritten data is not needed any more
                pipe.close()
