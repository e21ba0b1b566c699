"""The order in which many runs start: the longest chain of calls first, as many at a time as memory allows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_LOOK_S = 0.5

Job = TypeVar("Job", bound=Hashable)
Overrides = tuple[str, ...]
"""The settings of a run as on the command line."""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class Batch(Generic[Job]):
    """Jobs that are the same run."""

    jobs: tuple[Job, ...]
    overrides: Overrides


@dataclass(kw_only=True)
class Schedule(Generic[Job]):
    """Gives out jobs to several threads, those with the longest chain of calls first.

    A job is ready once the jobs that it ``needs`` have ended. They come before it in ``jobs``. Then ``overrides``
    returns its settings, or ``None`` if it should not run. ``chain`` is the length of a job's own chain of calls.
    ``memory`` is what a job takes in MiB. ``room`` limits what all jobs take together. It is ``None`` without a limit.
    One job may always run.
    """

    jobs: Sequence[Job]
    overrides: Callable[[Iterable[Job]], Mapping[Job, Overrides | None]]
    needs: Callable[[Job], Iterable[Job]] = lambda _: ()
    chain: Callable[[Job], float] = lambda _: 0.0
    memory: Callable[[Job], int] = lambda _: 0
    room: int | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _running: dict[Overrides, int] = field(default_factory=dict)
    _unready: set[Job] = field(init=False)
    _open: set[Job] = field(init=False)
    _urgency: Mapping[Job, float] = field(init=False)
    _ready: dict[Overrides, list[Job]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._unready, self._open = set(self.jobs), set(self.jobs)
        self._urgency = self._urgencies()
        self._find_ready()

    def take(self, stopped: threading.Event) -> Batch[Job] | None:
        """Return the next jobs once they may start, or ``None`` if there are no more."""
        with self._changed:
            while not stopped.is_set():
                fitting = [overrides for overrides in self._ready if self._fits(overrides)]
                if fitting:
                    return self._start(max(fitting, key=self._urgency_of))
                if not self._ready and not (self._running and self._unready):
                    return None  # what is left, if anything, needs jobs that were not made
                self._changed.wait(_LOOK_S)  # a signal handler may set `stopped`, but not wake this thread
            return None

    def end(self, batch: Batch[Job]) -> None:
        """Note that these jobs have ended."""
        with self._changed:
            del self._running[batch.overrides]
            self._open -= set(batch.jobs)
            self._find_ready()
            self._changed.notify_all()

    def _start(self, overrides: Overrides) -> Batch[Job]:
        jobs = tuple(self._ready.pop(overrides))
        self._running[overrides] = self.memory(jobs[0])
        return Batch(jobs=jobs, overrides=overrides)

    def _fits(self, overrides: Overrides) -> bool:
        """Whether a run is not being made for other jobs, and there is memory for it."""
        taken = sum(self._running.values())
        needed = self.memory(self._ready[overrides][0])
        return overrides not in self._running and (not taken or self.room is None or taken + needed <= self.room)

    def _urgency_of(self, overrides: Overrides) -> float:
        return max(self._urgency[job] for job in self._ready[overrides])

    def _find_ready(self) -> None:
        """Move the jobs whose needs have ended to ``_ready``. A job that does not run has also ended."""
        while ready := [job for job in self.jobs if job in self._unready and not self._open & set(self.needs(job))]:
            self._unready -= set(ready)
            for job, overrides in self.overrides(ready).items():
                if overrides is None:
                    self._open.discard(job)
                else:
                    self._ready.setdefault(overrides, []).append(job)

    def _urgencies(self) -> Mapping[Job, float]:
        """Return the length of each job's chain with the longest one of the jobs that need it."""
        lengths: dict[Job, float] = dict.fromkeys(self.jobs, 0.0)
        for job in reversed(self.jobs):  # a job comes after those that it needs
            lengths[job] += self.chain(job)
            for need in self.needs(job):
                if need in lengths:
                    lengths[need] = max(lengths[need], lengths[job])
        return lengths
