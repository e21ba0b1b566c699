"""The current progress of a run: updated by the arena and the runners, read by the console and trackers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from ace_bench.core.context import Context
from ace_bench.store.journal import RolloutRecord
from ace_bench.store.ledger import Account


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A snapshot. ``score``: mean sample score of the phase in percent; ``left``: seconds, ``None`` if unknown."""

    phase: str
    done: int
    total: int
    score: float | None
    faults: int
    spent: Account
    context_size: int
    context_tokens: int
    left: float | None


class Observer(Protocol):
    """Something that shows or sends progress; it must never stop a run."""

    def update(self, progress: Progress) -> None:
        """Take a snapshot; called after every rollout and step, from several threads."""
        ...

    def close(self) -> None:
        """Finish pending output."""
        ...


class ProgressCounter:
    """Counts the progress of the current phase and notifies the observers."""

    def __init__(self, *, spent: Callable[[], Account], observers: tuple[Observer, ...] = ()):
        self._spent = spent
        self._observers = observers
        self._lock = threading.Lock()
        self.begin("start", 0)
        self._context_size = self._context_tokens = 0

    def begin(self, phase: str, total: int, done: int = 0) -> None:
        """Start a phase of ``total`` units (samples or steps), of which ``done`` were finished before."""
        with self._lock:
            self._phase, self._total, self._done = phase, total, done
            self._points, self._graded, self._faults = 0.0, 0, 0
            self._started, self._worked = time.monotonic(), 0

    def enter(self, phase: str, total: int, done: int = 0) -> None:
        """Start a phase, unless it is the current one."""
        if phase != self._phase:
            self.begin(phase, total, done)

    def count_rollout(self, record: RolloutRecord) -> None:
        """Count a rollout; the running score uses first rollouts only."""
        with self._lock:
            if record.trial == 0:
                self._points += record.grade.score
                self._graded += 1
            self._faults += record.fault is not None

    def advance(self, context: Context | None = None, *, replayed: bool = False) -> None:
        """Finish one unit; a replayed one does not count for the estimate of the time left."""
        with self._lock:
            self._done += 1
            if replayed:
                self._started = time.monotonic()
            else:
                self._worked += 1
            if context is not None:
                self._context_size, self._context_tokens = context.size, context.tokens
            progress = self._snapshot()
        for observer in self._observers:
            observer.update(progress)

    def seconds_left(self) -> float:
        """Return how long the phase will take, infinite while its first unit is not finished."""
        with self._lock:
            left = self._left()
        return inf if left is None else left

    def _left(self) -> float | None:
        pace = (time.monotonic() - self._started) / self._worked if self._worked else None
        return None if pace is None else pace * (self._total - self._done)

    def _snapshot(self) -> Progress:
        return Progress(
            phase=self._phase,
            done=self._done,
            total=self._total,
            score=100 * self._points / self._graded if self._graded else None,
            faults=self._faults,
            spent=self._spent(),
            context_size=self._context_size,
            context_tokens=self._context_tokens,
            left=self._left(),
        )
