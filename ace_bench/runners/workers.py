"""Makes many runs, several at a time, in the order of a schedule.

A sweep over the cores of this machine and ``ace-bench reproduce`` make their runs here. Runs whose backbones are
servers mostly wait: they are threads of this process, which share its imports, data and slots. Runs that compute have
worker processes, so that they use all cores. A run that fails stops no other; one whose worker process dies is started
once more. Ctrl-C stops all runs cleanly.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType
from typing import Any, TextIO

from ace_bench.core.backbones import Interruptible
from ace_bench.core.resources import config_folders
from ace_bench.core.terminal import log_to_stdout
from ace_bench.core.types import ProbeReply
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.host import EXIT_INTERRUPTED, RunEnd, RunReport, Signals, end_after, reporting
from ace_bench.runners.identifying import compose_run
from ace_bench.runners.planning import Composer
from ace_bench.runners.run import run
from ace_bench.runners.schedule import Batch, Job, Schedule, Words, cores
from ace_bench.store.processes import command_of

DIED = "the process of this run was killed, perhaps for want of memory"

_ATTEMPTS = 2
"""How often a run is started whose process dies."""
_BROKEN = 1
"""The exit status of a run that the program does not know how to stop, as Python's."""

_log = logging.getLogger(__name__)


def _make_run(
    config: RunConfig,
    reported: AbstractContextManager[RunReport],
    output: TextIO | None = None,
    probed: dict[str, ProbeReply] | None = None,
) -> RunEnd:
    """Make a run, in any process; what stops it is reported, and an error of the program is printed."""
    try:
        with reported as report:
            report.metrics = run(config, replace(report.host, probed={} if probed is None else probed))
    except Exception:  # an error of the program, which is one row
        traceback.print_exc(file=output)
        report.status = _BROKEN
    return RunEnd(status=report.status, metrics=report.metrics, folders=report.folders)


def mostly_waits(settings: Mapping[str, Any]) -> bool:
    """Whether a run with these settings waits most of its time, because servers answer all its calls."""
    named = (settings["backbone"], *(settings.get("roles") or {}).values())
    try:
        return all(issubclass(resolve_name(node["_target_"]), Interruptible) for node in named)
    except (ImportError, AttributeError, LookupError, TypeError, ValueError):
        return False  # building it raises the error


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended, ``None`` if its process died; ``output`` is what it printed, empty where the console has it."""

    end: RunEnd | None
    seconds: float = 0.0
    output: str = ""


class Workers:
    """Makes runs, ``count`` at a time: those that mostly wait side by side in this process, each other in a process.

    At most ``processes`` processes run at a time. With ``captures`` what runs print is in their outcomes; else it goes
    to the console. ``compose`` returns the configuration of a run.
    """

    def __init__(
        self,
        count: int,
        *,
        processes: int | None = None,
        captures: bool = False,
        compose: Callable[[Words], RunConfig] | None = None,
    ) -> None:
        self.count = count
        self.stopped = threading.Event()
        self.compose = compose or partial(compose_run, compose=Composer(config_folders()))
        self._captures = captures
        self._processes = threading.Semaphore(processes or cores())
        self._signals = Signals()
        self._probed: dict[str, ProbeReply] = {}
        self._turn = threading.Semaphore()
        """Of the run that begins: several at once would compute, and keep the calls of the others waiting."""
        self._busy: set[_Worker] = set()

    def make(self, schedule: Schedule[Job], done: Callable[[Batch[Job], Outcome], None]) -> None:
        """Make all runs of a schedule; ``done`` is called with the outcome of each, from several threads."""

        def work(_: int) -> None:
            with closing(_Worker()) as worker:
                while (batch := schedule.take(self.stopped)) is not None:
                    try:
                        done(batch, self._make_one(worker, batch.words))
                    finally:
                        schedule.end(batch)

        with self._signals.handled(), self._signals.passed_to(self._stop), ThreadPoolExecutor(self.count) as threads:
            try:
                list(threads.map(work, range(self.count)))
            except BaseException:  # such as the end of a Slurm job's time
                self._signals.send()
                raise

    def _make_one(self, worker: _Worker, words: Words) -> Outcome:
        started = time.monotonic()
        end: RunEnd | None
        with ExitStack() as turn:
            turn.enter_context(self._turn)
            if self.stopped.is_set():
                return Outcome(end=RunEnd(status=EXIT_INTERRUPTED))
            config = self.compose(words)
            if mostly_waits(config.settings):  # in this thread; its turn ends once it has a folder
                text = StringIO() if self._captures else None
                reported = reporting(command_of(words), signals=self._signals, begun=turn.close, output=text)
                end = _make_run(config, reported, text, self._probed)
                output = text.getvalue() if text else ""
            else:
                turn.close()
                end, output = self._make_apart(worker, config, words)
        return Outcome(end=end, seconds=time.monotonic() - started, output=output)

    def _make_apart(self, worker: _Worker, config: RunConfig, words: Words) -> tuple[RunEnd | None, str]:
        """Make a run in a process."""
        self._busy.add(worker)
        try:
            with tempfile.TemporaryDirectory() if self._captures else nullcontext() as folder:
                log = None if folder is None else Path(folder) / "output"
                end = self._attempt(worker, config, words, log)
                return end, "" if log is None or not log.exists() else log.read_text(encoding="utf-8", errors="replace")
        finally:
            self._busy.discard(worker)

    def _attempt(self, worker: _Worker, config: RunConfig, words: Words, log: Path | None) -> RunEnd | None:
        for again in reversed(range(_ATTEMPTS)):
            try:
                with self._processes:
                    worker.open()
                    if self.stopped.is_set():
                        break
                    return worker.make(config, words, log)
            except BrokenProcessPool:
                if not self.stopped.is_set():
                    _log.warning("%s: %s;%s", " ".join(words), DIED, " starting it once more" * again)
        return RunEnd(status=EXIT_INTERRUPTED) if self.stopped.is_set() else None

    def _stop(self, times: int) -> None:
        """Start no further runs; each run stops cleanly at the first signal and at once at the second."""
        del times
        self.stopped.set()
        for worker in tuple(self._busy):
            worker.interrupt()


def make_all(runs: Sequence[Sequence[str]], workers: Workers) -> list[RunEnd | None]:
    """Make runs in their order and return how they ended, ``None`` if the process died."""
    ends: dict[int, RunEnd | None] = {}

    def note(batch: Batch[int], outcome: Outcome) -> None:
        ends.update(dict.fromkeys(batch.jobs, outcome.end))

    def words(jobs: Iterable[int]) -> dict[int, Words | None]:
        return {job: tuple(runs[job]) for job in jobs}

    workers.make(Schedule(jobs=range(len(runs)), words=words, chain=lambda job: -job), note)
    return [ends.get(job) for job in range(len(runs))]


def make_share(
    runs: Sequence[Sequence[str]], configs: Sequence[RunConfig] = (), *, processes: int | None = None
) -> list[RunEnd | None]:
    """Make a share of a sweep's runs on a machine of a cluster and return how they ended.

    ``configs`` are theirs, where they are composed already.
    """
    known = dict(zip(map(tuple, runs), configs, strict=True)) if configs else {}
    compose = known.__getitem__ if known else None
    return make_all(runs, Workers(len(runs), processes=processes, compose=compose))


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
    log_to_stdout()
    end_after(parent)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    os._exit(EXIT_INTERRUPTED)


def _make(config: RunConfig, words: Words, log: Path | None, parent: int) -> RunEnd:
    with nullcontext() if log is None else _output_to(log):
        return _make_run(config, reporting(command_of(words), parent=parent))


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
