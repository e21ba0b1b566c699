"""The current progress of a run: counted by the arena and the loop, shown on the console, read by trackers."""

from __future__ import annotations

import threading
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ace_bench.core.console import Console
from ace_bench.core.context import Context
from ace_bench.core.types import Record
from ace_bench.runners.summary import compact, duration
from ace_bench.store.call_log import Account, Ledger
from ace_bench.store.journal import RolloutRecord
from ace_bench.store.speed import Speed

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot. ``score``: mean sample score of the phase in percent; ``left``: seconds, ``None`` if unknown.

    ``speed`` is ``None`` where no model writes.
    """

    phase: str
    done: int
    total: int
    score: float | None
    faults: int
    spent: Account
    context_size: int
    context_tokens: int
    left: float | None
    speed: Speed | None = Speed()


class Observer(Protocol):
    """Something that shows or sends progress; it must never stop a run."""

    def update(self, progress: Progress) -> None:
        """Take a snapshot; called after every rollout and step, from several threads."""
        ...

    def close(self) -> None:
        """Finish pending output."""
        ...


class ProgressCounter:
    """Counts the progress of the current phase and notifies the observers. The speed of a simulation says nothing."""

    def __init__(self, *, ledger: Ledger, observers: tuple[Observer, ...] = (), simulated: bool = False):
        self._ledger = ledger
        self._simulated = simulated
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
            if record.trial == 0 and record.grade.judged:
                self._points += record.grade.score
                self._graded += 1
            self._faults += record.fault is not None

    def advance(self, context: Context | None, *, replayed: bool = False) -> None:
        """Finish one unit; a replayed one does not count for the estimate of the time left."""
        with self._lock:
            self._done += 1
            if replayed:
                self._started = time.monotonic()
            else:
                self._worked += 1
            if context is not None:
                self._context_size, self._context_tokens = context.size, context.tokens
            progress = Progress(
                phase=self._phase,
                done=self._done,
                total=self._total,
                score=100 * self._points / self._graded if self._graded else None,
                faults=self._faults,
                spent=self._ledger.total,
                context_size=self._context_size,
                context_tokens=self._context_tokens,
                left=self._seconds_left(),
                speed=None if self._simulated else self._ledger.speed(),
            )
        for observer in self._observers:
            observer.update(progress)

    def seconds_left(self) -> float:
        """Return how long the phase will take, infinite while its first unit is not finished."""
        with self._lock:
            seconds = self._seconds_left()
        return inf if seconds is None else seconds

    def _seconds_left(self) -> float | None:
        elapsed, todo = time.monotonic() - self._started, self._total - self._done
        return elapsed / self._worked * todo if self._worked else None


_PLAIN_EVERY_S = 10.0
_WIDE = 80
"""Columns from which the bar has its full length."""


class Tracker(Observer, Protocol):
    """An observer that also gets the final metrics, such as Weights & Biases. It returns at once and never raises."""

    def begin(self, folder: Path, metadata: Record, config: str) -> None:
        """Take a run's folder, description and resolved YAML before it starts or continues."""
        ...

    def finish(self, metrics: Record) -> None:
        """Take the metrics of a finished run."""
        ...


def bars(console: Console) -> Bars:
    """Return lines with a name, a bar, the time that is left, and details that are cut where the terminal ends."""
    # Here, as runs that write to a file start without it.
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24 if console.width >= _WIDE else 10),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn(
            "{task.fields[details]}",
            style="dim",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        console=console,
        expand=True,
    )


class _TerminalDisplay:
    """One live line per phase."""

    def __init__(self, console: Console):
        from rich.progress import TaskID

        self._bars = bars(console)
        self._lock = threading.Lock()
        self._phase: str | None = None
        self._bar = TaskID(0)
        self._bars.start()

    def update(self, progress: Progress) -> None:
        with self._lock:
            if progress.phase != self._phase:
                self._phase = progress.phase
                self._bar = self._bars.add_task(progress.phase, total=progress.total, left="", details="")
            self._bars.update(
                self._bar, completed=progress.done, left=time_left(progress), details=describe_progress(progress)
            )

    def close(self) -> None:
        self._bars.stop()


class _PlainDisplay:
    """Lines for logs: one when a phase starts or ends and one every few seconds."""

    def __init__(self, console: Console):
        self._console = console
        self._lock = threading.Lock()
        self._phase: str | None = None
        self._last = 0.0

    def update(self, progress: Progress) -> None:
        with self._lock:
            now = time.monotonic()
            due = now - self._last >= _PLAIN_EVERY_S or progress.done == progress.total
            if progress.phase == self._phase and not due:
                return
            self._phase, self._last = progress.phase, now
            details = " · ".join(filter(None, (time_left(progress), describe_progress(progress))))
            line = f"{progress.phase}: {progress.done}/{progress.total}, {details}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        pass


def make_display(console: Console) -> Observer:
    """Return what shows a run's progress: a live table on a terminal, else lines."""
    return _TerminalDisplay(console) if console.is_terminal else _PlainDisplay(console)


def describe_progress(progress: Progress) -> str:
    """Describe a snapshot in one line; unknown figures are n/a."""
    spent, tokens = progress.spent, progress.spent.usage.tokens
    parts = [
        "score n/a" if progress.score is None else f"score {progress.score:.1f}",
        f"{spent.calls:,} calls",
        "tokens n/a" if tokens is None else f"{compact(tokens)} tokens",
        "$ n/a" if spent.usage.usd is None else f"${spent.usage.usd:,.2f}",
    ]
    if progress.speed is not None:
        parts.append(str(progress.speed))
    if spent.retries:
        parts.append(f"{spent.retries:,} retries")
    if progress.faults:
        parts.append(f"{progress.faults} faults")
    if progress.context_size:
        parts.append(f"context {progress.context_size} items, {compact(progress.context_tokens)} tokens")
    return " · ".join(parts)


def time_left(progress: Progress) -> str:
    """Return the time that is left of a phase, "" where it is unknown or over."""
    is_shown = progress.left is not None and progress.done < progress.total
    return f"{duration(progress.left or 0.0)} left" if is_shown else ""
