"""The order in which runs start: the longest chain of calls first, as many at a time as memory allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ace_bench.cli.reproducing.request import Job

_LOOK_S = 0.5
_START_S = 2.0
"""CPU seconds that starting a run takes, about. Starts are spread so that the first runs are not slowed down."""

Command = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Jobs that one command makes."""

    jobs: tuple[Job, ...]
    command: Command


@dataclass(kw_only=True)
class Schedule:
    """Gives out the jobs of a request to several threads.

    A job is ready once the jobs it ``needs`` have ended; ``commands`` then returns its command, or ``None`` if it is
    not to be made. ``chain`` is the length of a job's own chain of calls, ``memory`` what it takes in MiB, ``room``
    what all jobs may take together, ``None`` without a limit. One job may always run. ``starters`` is how many runs
    this machine can start at the same time.
    """

    jobs: Sequence[Job]
    commands: Callable[[Iterable[Job]], Mapping[Job, Command | None]]
    chain: Callable[[Job], float]
    memory: Callable[[Job], int]
    room: int | None
    starters: int
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _running: dict[Command, int] = field(default_factory=dict)
    _unready: set[Job] = field(init=False)
    _open: set[Job] = field(init=False)
    _urgency: Mapping[Job, float] = field(init=False)
    _ready: dict[Command, list[Job]] = field(default_factory=dict)
    _next_start: float = 0.0

    def __post_init__(self) -> None:
        self._unready, self._open = set(self.jobs), set(self.jobs)
        self._urgency = self._urgencies()
        self._find_ready()

    def take(self, stopped: threading.Event) -> Batch | None:
        """Return the next jobs to make, once they may start; ``None`` if there are no more."""
        with self._changed:
            while not stopped.is_set():
                fitting = [command for command in self._ready if self._fits(command)]
                pause = self._next_start - time.monotonic()
                if fitting and pause <= 0:
                    return self._start(max(fitting, key=self._urgency_of))
                if not self._ready and not self._running:
                    return None  # what is left needs jobs that were not made
                # A signal handler may set `stopped`, but not wake this thread.
                self._changed.wait(min(max(pause, 0.0), _LOOK_S) if fitting else _LOOK_S)
            return None

    def end(self, batch: Batch) -> None:
        """Note that the command of these jobs has ended."""
        with self._changed:
            del self._running[batch.command]
            self._open -= set(batch.jobs)
            self._find_ready()
            self._changed.notify_all()

    def _start(self, command: Command) -> Batch:
        jobs = tuple(self._ready.pop(command))
        self._running[command] = self.memory(jobs[0])
        self._next_start = time.monotonic() + _START_S / self.starters
        return Batch(jobs=jobs, command=command)

    def _fits(self, command: Command) -> bool:
        """Whether a command is not being made for other jobs, and there is memory for it."""
        taken = sum(self._running.values())
        needed = self.memory(self._ready[command][0])
        return command not in self._running and (not taken or self.room is None or taken + needed <= self.room)

    def _urgency_of(self, command: Command) -> float:
        return max(self._urgency[job] for job in self._ready[command])

    def _find_ready(self) -> None:
        """Move the jobs to ``_ready`` whose needs have ended; those without a command have ended, too."""
        while ready := [job for job in self.jobs if job in self._unready and not self._open & set(_needs(job))]:
            self._unready -= set(ready)
            for job, command in self.commands(ready).items():
                if command is None:
                    self._open.discard(job)
                else:
                    self._ready.setdefault(command, []).append(job)

    def _urgencies(self) -> Mapping[Job, float]:
        """Return the length of each job's chain with the longest one of the jobs that need it."""
        found: dict[Job, float] = dict.fromkeys(self.jobs, 0.0)
        for job in reversed(self.jobs):  # a job comes after those that it needs
            found[job] += self.chain(job)
            for need in _needs(job):
                if need in found:
                    found[need] = max(found[need], found[job])
        return found


def _needs(job: Job) -> Iterable[Job]:
    return [Job(planned=need.run, extra=job.extra, seed=job.seed) for need in job.planned.needs]
