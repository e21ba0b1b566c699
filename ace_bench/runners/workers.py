"""Makes many runs in one process, several at a time, in the order of a schedule.

A sweep and ``ace-bench reproduce`` make their runs here. The runs are threads: they mostly wait for servers and for the
engines of their environments, and they share imports, data, slots for calls and budgets. A run that fails stops no
other. Ctrl-C stops all runs cleanly.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO

from ace_bench.backbones.vllm.server import ServerPool
from ace_bench.core.resources import config_folders
from ace_bench.core.types import Probe
from ace_bench.runners.board import Board, result_in_words
from ace_bench.runners.composing import RunConfig, compose_run
from ace_bench.runners.host import EXIT_INTERRUPTED, EXIT_STOPPED, RunEnd, Signals, reporting
from ace_bench.runners.planning import Composer
from ace_bench.runners.run import run
from ace_bench.runners.schedule import Batch, Job, Overrides, Schedule
from ace_bench.runners.shared_limits import Part, SharedLimits
from ace_bench.runners.summary import duration
from ace_bench.store.processes import command_of

_BROKEN = 1
"""The exit status of a run that the program does not know how to stop, as Python's."""
_LAST_LINES = 12
"""Lines of a failed run's output that are shown."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended; ``output`` is what it printed, empty if it went to the console."""

    end: RunEnd
    seconds: float = 0.0
    output: str = ""


def outcome_in_words(outcome: Outcome) -> str:
    """Say what a run has reached, or why it failed, with the last lines of its output."""
    if outcome.end.status:
        last = "".join(f"\n    {line}" for line in outcome.output.splitlines()[-_LAST_LINES:])
        return f"failed with status {outcome.end.status}{last}"
    result = f"{result_in_words(outcome.end.metrics)}, " if outcome.end.metrics else ""
    return f"{result}{duration(outcome.seconds)}"


class Workers:
    """Makes runs, ``count`` at a time.

    ``compose`` returns the configuration of a run. The runs share ``limits``, and the servers that they start.
    ``sweep`` is the command that continues all of them.
    """

    def __init__(
        self,
        count: int,
        *,
        compose: Callable[[Overrides], RunConfig] | None = None,
        limits: SharedLimits | None = None,
        sweep: str | None = None,
    ) -> None:
        self.count = count
        self.stopped = threading.Event()
        self.compose = compose or partial(compose_run, compose=Composer(config_folders()))
        self._board: Board | None = None
        self._limits = limits or SharedLimits()
        self._sweep = sweep
        self._signals = Signals()
        self._probes: dict[str, Probe] = {}
        self._servers = ServerPool(keeps_idle=True)
        self._turn = threading.Semaphore()
        """Of the run that begins: several at once would compute, and keep the calls of the others waiting."""

    def make(
        self, schedule: Schedule[Job], done: Callable[[Batch[Job], Outcome], None], board: Board | None = None
    ) -> None:
        """Make all runs of a schedule; ``done`` is called with the outcome of each, from several threads.

        With a ``board`` it shows the progress of each run, whose output is in its outcome. Else both go to the console.
        """
        self._board = board

        def work(_: int) -> None:
            while (batch := schedule.take(self.stopped)) is not None:
                try:
                    done(batch, self._make_one(batch.overrides))
                finally:
                    schedule.end(batch)

        with (
            board.shown() if board else nullcontext(),
            closing(self._servers),
            self._signals.handled(),
            self._signals.passed_to(self._stop),
            ThreadPoolExecutor(self.count) as threads,
        ):
            try:
                list(threads.map(work, range(self.count)))
            except BaseException:  # such as the end of a Slurm job's time
                self._signals.send()
                raise

    def _make_one(self, overrides: Overrides) -> Outcome:
        """Make a run; what stops it is in its outcome, and an error of the program is printed."""
        started = time.monotonic()
        output = StringIO() if self._board else None
        with ExitStack() as turn:
            turn.enter_context(self._turn)
            if self.stopped.is_set():
                return Outcome(end=RunEnd(status=EXIT_INTERRUPTED))
            command, live = command_of(overrides), self.count == 1
            reported = reporting(command, signals=self._signals, live=live, begun=turn.close, output=output)
            try:
                with reported as report:
                    host = replace(
                        report.host,
                        sweep=self._sweep,
                        probes=self._probes,
                        limits=self._limits,
                        servers=self._servers,
                        display=partial(self._board.run, overrides) if self._board else None,
                    )
                    report.metrics = run(self.compose(overrides), host)
            except Exception:  # an error of the program, which is one row
                traceback.print_exc(file=output)
                report.status = _BROKEN
        if report.status == EXIT_STOPPED:
            self._probes.clear()  # a server that failed is probed again by the next run, before it sends calls
        end = RunEnd(status=report.status, metrics=report.metrics, folders=report.folders)
        return Outcome(end=end, seconds=time.monotonic() - started, output=output.getvalue() if output else "")

    def _stop(self, times: int) -> None:
        """Start no further runs; each run stops cleanly at the first signal and at once at the second."""
        del times
        self.stopped.set()


def make_all(runs: Sequence[Sequence[str]], workers: Workers, board: Board | None = None) -> list[RunEnd | None]:
    """Make runs in their order and return how they ended, ``None`` for a run that did not begin."""
    ends: dict[int, RunEnd | None] = {}

    def note(batch: Batch[int], outcome: Outcome) -> None:
        ends.update(dict.fromkeys(batch.jobs, outcome.end))
        if board is not None:
            board.end(board.names[batch.overrides], outcome_in_words(outcome), "red" if outcome.end.status else None)

    def overrides(jobs: Iterable[int]) -> dict[int, Overrides | None]:
        return {job: tuple(runs[job]) for job in jobs}

    workers.make(Schedule(jobs=range(len(runs)), overrides=overrides, chain=lambda job: -job), note, board)
    return [ends.get(job) for job in range(len(runs))]


def make_share(
    runs: Sequence[Sequence[str]], configs: Sequence[RunConfig], part: Part, sweep: str
) -> list[RunEnd | None]:
    """Make a share of a sweep's runs on a machine of a cluster, within its part of the limits.

    ``configs`` are the configurations of the runs, and ``sweep`` is the command that continues the whole sweep.
    Returns how the runs ended.
    """
    compose = dict(zip(map(tuple, runs), configs, strict=True)).__getitem__
    return make_all(runs, Workers(len(runs), compose=compose, limits=SharedLimits(part, configs), sweep=sweep))
