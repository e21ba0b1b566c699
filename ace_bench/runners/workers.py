"""Makes many runs: in worker processes, several at a time, in the order of a schedule.

A sweep over the cores of this machine and ``ace-bench reproduce`` make their runs here. A run that fails stops no
other; one whose process dies is started once more, and no other run dies with it. Ctrl-C stops all runs cleanly.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

from ace_bench.core.resources import config_folders
from ace_bench.runners.composing import RunConfig, compose_run
from ace_bench.runners.planning import Composer
from ace_bench.runners.run import Launch, RunEnd, reporting, run
from ace_bench.runners.schedule import Batch, Job, Schedule, Words
from ace_bench.runners.stopping import EXIT_INTERRUPTED, end_after
from ace_bench.store.processes import command_of

DIED = "the process of this run was killed, perhaps for want of memory"

_ATTEMPTS = 2
"""How often a run is started whose process dies."""
_BROKEN = 1
"""The exit status of a run that the program does not know how to stop, as Python's."""

_log = logging.getLogger(__name__)


def make_run(config: RunConfig, words: Sequence[str], *, parent: int | None = None) -> RunEnd:
    """Make the run that ``words`` compose to, in any process; what stops it is printed."""
    try:
        with reporting(Launch(command=command_of(words), parent=parent)) as report:
            report.metrics = run(config, report.host)
    except Exception:  # an error of the program, which is one row
        traceback.print_exc()
        report.status = _BROKEN
    return RunEnd(status=report.status, metrics=report.metrics, folders=report.folders)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended, ``None`` if its process died; ``output`` is what it printed, empty where the console has it."""

    end: RunEnd | None
    seconds: float = 0.0
    output: str = ""


class Workers:
    """Processes that make runs, ``count`` at a time, each one after another.

    With ``captures`` what runs print is in their outcomes; else it goes to the console.
    """

    def __init__(self, count: int, *, captures: bool = False) -> None:
        self.count = count
        self.stopped = threading.Event()
        self._captures = captures
        self._compose = Composer(config_folders())
        self._composing = threading.Lock()
        self._busy: set[_Worker] = set()

    def make(self, schedule: Schedule[Job], done: Callable[[Batch[Job], Outcome], None]) -> None:
        """Make all runs of a schedule; ``done`` is called with the outcome of each, from several threads."""

        def work(_: int) -> None:
            with closing(_Worker()) as worker:
                process = True
                while (batch := schedule.take(self.stopped, process=process)) is not None:
                    process = False
                    try:
                        done(batch, self._make_one(worker, batch.words))
                    finally:
                        schedule.end(batch)

        with self._signals(), ThreadPoolExecutor(self.count) as threads:
            list(threads.map(work, range(self.count)))

    def _make_one(self, worker: _Worker, words: Words) -> Outcome:
        started = time.monotonic()
        self._busy.add(worker)
        try:
            with tempfile.TemporaryDirectory() if self._captures else nullcontext() as folder:
                log = None if folder is None else Path(folder) / "output"
                end = self._attempt(worker, words, log)
                output = "" if log is None or not log.exists() else log.read_text(encoding="utf-8", errors="replace")
        finally:
            self._busy.discard(worker)
        return Outcome(end=end, seconds=time.monotonic() - started, output=output)

    def _attempt(self, worker: _Worker, words: Words, log: Path | None) -> RunEnd | None:
        with self._composing:
            config = compose_run(words, self._compose)
        for again in reversed(range(_ATTEMPTS)):
            try:
                worker.open()
                if self.stopped.is_set():
                    break
                return worker.make(config, words, log)
            except BrokenProcessPool:
                if not self.stopped.is_set():
                    _log.warning("%s: %s;%s", " ".join(words), DIED, " starting it once more" * again)
        return RunEnd(status=EXIT_INTERRUPTED) if self.stopped.is_set() else None

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass SIGINT and SIGTERM on; each run stops cleanly at the first and at once at the second."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.stopped.set()
        for worker in tuple(self._busy):
            worker.interrupt()


class _Worker:
    """One process, which is replaced when it dies."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._process: int | None = None

    def open(self) -> None:
        """Start the process, unless it is running."""
        if self._pool is None:
            context, parent = get_context("spawn"), os.getpid()
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(parent,))
            try:
                self._process = self._pool.submit(os.getpid).result()
            except BrokenProcessPool:
                self.close()
                raise

    def make(self, config: RunConfig, words: Words, log: Path | None) -> RunEnd:
        """Make a run in the process; raises ``BrokenProcessPool`` if that dies."""
        assert self._pool is not None
        try:
            return self._pool.submit(_make, config, words, log, os.getpid()).result()
        except BrokenProcessPool:
            self.close()
            raise

    def interrupt(self) -> None:
        """Stop the run of the process, which has not seen the Ctrl-C."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGINT)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = self._process = None


def _begin(parent: int) -> None:
    """Begin a worker process: it gets a Ctrl-C in the terminal once, from its parent, and ends when that is killed."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    end_after(parent)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    os._exit(EXIT_INTERRUPTED)


def _make(config: RunConfig, words: Words, log: Path | None, parent: int) -> RunEnd:
    with nullcontext() if log is None else _output_to(log):
        return make_run(config, words, parent=parent)


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Write what this process and its children print to a file."""
    with log.open("ab") as file:
        sys.stdout.flush()
        kept = [os.dup(number) for number in (1, 2)]
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
