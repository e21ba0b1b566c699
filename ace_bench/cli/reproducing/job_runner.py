"""Runs commands, several at a time. One that fails does not stop the others; Ctrl-C stops all of them cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ace_bench.cli.reproducing.schedule import Batch, Schedule
from ace_bench.runners.stopping import end_with_this_process

INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """How a command ended; ``output`` is what it printed, empty where that went to the console."""

    status: int
    seconds: float
    output: str = ""


class JobRunner:
    """Runs commands as separate processes, ``workers`` at a time. With one worker, output goes to the console."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.stopped = threading.Event()
        self._live: set[subprocess.Popen[str]] = set()

    def run(self, schedule: Schedule, done: Callable[[Batch, JobResult], None]) -> None:
        """Run all commands of a schedule; ``done`` is called with the result of each, from several threads."""

        def work(_: int) -> None:
            while (batch := schedule.take(self.stopped)) is not None:
                try:
                    result = self._run_one(batch.command)
                    if result.status < 0:  # a signal ended it, such as the system's for want of memory
                        result = self._run_one(batch.command)
                    done(batch, result)
                finally:
                    schedule.end(batch)

        with self._signals(), ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(work, range(self.workers)))

    def _run_one(self, command: Sequence[str]) -> JobResult:
        if self.stopped.is_set():
            return JobResult(status=INTERRUPTED, seconds=0.0)
        started = time.monotonic()
        captured = {} if self.workers == 1 else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        environment = dict(os.environ)
        end_with_this_process(environment)
        # With a session of its own, the process gets a Ctrl-C in the terminal once, through `_stop`, and not twice.
        process = subprocess.Popen(command, text=True, start_new_session=True, env=environment, **captured)  # type: ignore[call-overload]
        self._live.add(process)
        if self.stopped.is_set():
            process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate()
        finally:
            self._live.discard(process)
        return JobResult(status=process.returncode, seconds=time.monotonic() - started, output=output or "")

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
        for process in tuple(self._live):
            process.send_signal(signal.SIGINT)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
