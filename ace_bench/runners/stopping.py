"""Ends a run or a worker: at a signal, and when its parent process has ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

from rich.console import Console

from ace_bench.core.errors import Interrupted
from ace_bench.runners.limits import Stop

EXIT_INTERRUPTED = 130

_GRACE_S, _LIMIT_S, _ABANDON_S = 2.0, 4.0, 0.5
"""Seconds for pending replies to arrive, for an interrupted run to end, and for the runs beside it to note that they
stopped.
"""
_PATIENCE_S = 60.0
"""Seconds for pending replies to arrive when the parent process has ended."""
_LOOK_S = 1.0


def end_after(parent: int) -> None:
    """End this process once its parent has ended, even by ``kill -9``, and runs had time to stop.

    A worker would otherwise wait for work forever.
    """
    threading.Thread(target=_follow, args=[parent], daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    time.sleep(2 * _LIMIT_S)
    os._exit(EXIT_INTERRUPTED)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How signals end a run.

    ``interrupt`` ends pending calls after some seconds of grace; ``abandon`` records that the run stopped, before the
    process is ended because the run did not stop in time. ``parent`` is the process whose end ends the run. Without
    ``owns_process`` the process is never ended: a second Ctrl-C is Python's ``KeyboardInterrupt``. ``signals`` are
    those of the process, if others run in it, too.
    """

    interrupt: Callable[[float], None]
    abandon: Callable[[Interrupted], None]
    parent: int | None = None
    owns_process: bool = True
    signals: Signals | None = None


class Signals:
    """Passes SIGINT and SIGTERM on to all runs of a process, also to those that start later.

    What gets them is called with the number of signals so far, for one of them perhaps twice.
    """

    def __init__(self) -> None:
        self._count = 0
        self._runs: dict[int, Callable[[int], None]] = {}

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals during the block; only the main thread of a process gets them."""
        numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, self._pass_on) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def passed_to(self, stop: Callable[[int], None]) -> Iterator[None]:
        """Call ``stop`` at each signal during the block, and at its beginning if there was one before."""
        self._runs[id(stop)] = stop
        try:
            if self._count:
                stop(self._count)
            yield
        finally:
            del self._runs[id(stop)]

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.send()

    def send(self) -> None:
        """Stop all runs, as a signal does."""
        self._count += 1
        for stop in [*self._runs.values()]:
            stop(self._count)


@contextmanager
def stop_on_signals(console: Console, ending: Ending) -> Iterator[Stop]:
    """Request a stop at the first SIGINT or SIGTERM; a second one ends the process at once.

    The run ends within five seconds. Nothing is lost, because every finished call and rollout is already in the folder.
    """
    watch = _Watch(console=console, ending=ending)
    watch.look_for_parent()
    threading.Thread(target=watch.run, daemon=True).start()
    signals = ending.signals or Signals()
    try:
        with nullcontext() if ending.signals else signals.handled(), signals.passed_to(watch.on_signal):
            yield watch.stop
    except Interrupted:  # an interrupted backbone does not know the reason
        watch.stop.check()
        raise
    finally:
        watch.over.set()


@dataclass(kw_only=True)
class _Watch:
    """A thread that waits for stop requests, because a signal handler may do very little."""

    console: Console
    ending: Ending
    stop: Stop = field(default_factory=Stop)
    over: threading.Event = field(default_factory=threading.Event)

    def on_signal(self, times: int) -> None:
        """Request a stop; the second time end the process."""
        if times > 1 and not self.ending.owns_process:
            raise KeyboardInterrupt
        if times > 1:
            os._exit(EXIT_INTERRUPTED)
        self.stop.request(Interrupted("interrupted by the user"))

    def look_for_parent(self) -> None:
        """Request a stop if the parent has ended: this process has a new parent then."""
        if self.ending.parent not in (None, os.getppid()):
            self.stop.request(Interrupted("the process that started the run has ended"))

    def run(self) -> None:
        """Serve requests until the run is over."""
        while not self.over.is_set():
            reason = self.stop.next_request(_LOOK_S)
            if reason is None:
                self.look_for_parent()
                continue
            self.ending.interrupt(_GRACE_S if isinstance(reason, Interrupted) else _PATIENCE_S)
            if isinstance(reason, Interrupted):
                self._end_within_limit(reason)

    def _end_within_limit(self, reason: Interrupted) -> None:
        try:
            self.console.print("Stopping, within five seconds; once more to stop at once.", highlight=False)
        finally:  # the terminal may be closed
            if self.ending.owns_process and not self.over.wait(_LIMIT_S):
                try:
                    self.ending.abandon(reason)
                    time.sleep(_ABANDON_S if self.ending.signals else 0.0)
                finally:
                    os._exit(EXIT_INTERRUPTED)
