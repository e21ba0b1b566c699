"""What ends a run early: signals and the end of the parent process, a request to stop, too many lost calls in a row."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import FrameType

from rich.console import Console

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BackboneUnavailable, Interrupted, Stopped
from ace_bench.core.types import Fault


class Stop:
    """Holds the first reason to stop, if any. Safe to use from threads and signal handlers."""

    def __init__(self) -> None:
        self._reason: Stopped | None = None
        # SimpleQueue is reentrant: a signal handler may fill it while another use is interrupted; an Event is not.
        self._requests: SimpleQueue[Stopped] = SimpleQueue()

    def request(self, reason: Stopped) -> None:
        """Request the end of the run."""
        self._reason = self._reason or reason
        self._requests.put(reason)

    def check(self) -> None:
        """Raise the reason if a stop was requested."""
        if self._reason is not None:
            raise type(self._reason)(self._reason.reason)

    def next_request(self, timeout: float) -> Stopped | None:
        """Wait some seconds for a new request."""
        try:
            return self._requests.get(timeout=timeout)
        except Empty:
            return None


@dataclass(frozen=True, kw_only=True)
class FaultRule:
    """``stop_after`` unanswered calls in a row stop the run; with ``accept`` none does, and each is a wrong answer.

    ``learn_unreadable``: a reply that cannot be read is an attempt that failed, as in the authors' code, and no fault.
    """

    accept: bool = False
    stop_after: int = 5
    learn_unreadable: bool = True

    def is_answer(self, fault: Fault | None) -> bool:
        """Whether a call or rollout that ended with ``fault`` counts as finished."""
        return fault is None or self.accept or not fault.unanswered


class Outage:
    """Counts consecutive unanswered calls per backbone, and requests the stop."""

    def __init__(self, rule: FaultRule, stop: Stop):
        self._rule = rule
        self._stop = stop
        self._in_a_row: Counter[int] = Counter()
        self._lock = threading.Lock()

    def reset(self, backbone: Backbone) -> None:
        """Record an answered call."""
        if self._in_a_row[id(backbone)]:  # seldom; most calls need not take the lock
            with self._lock:
                self._in_a_row[id(backbone)] = 0

    def count_failure(self, backbone: Backbone, fault: Fault) -> None:
        """Record an unanswered call."""
        with self._lock:
            self._in_a_row[id(backbone)] += 1
            number = self._in_a_row[id(backbone)]
        if number >= self._rule.stop_after:
            calls = "a call" if number == 1 else f"{number} calls in a row"
            self._stop.request(
                BackboneUnavailable(
                    f"{backbone.name} left {calls} unanswered ({fault.kind}: {fault.message}); a continued run repeats "
                    "them, and with accept_faults=true they count as wrong"
                )
            )


EXIT_INTERRUPTED = 130

_GRACE_S, _LIMIT_S = 2.0, 4.5
"""Seconds for pending replies to arrive, and seconds for an interrupted run to end."""
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
    ``owns_process`` the process is never ended: a second Ctrl-C is Python's ``KeyboardInterrupt``.
    """

    interrupt: Callable[[float], None]
    abandon: Callable[[Interrupted], None]
    parent: int | None = None
    owns_process: bool = True


@contextmanager
def stop_on_signals(console: Console, ending: Ending) -> Iterator[Stop]:
    """Request a stop at the first SIGINT or SIGTERM; a second one ends the process at once.

    The run ends within five seconds. Nothing is lost, because every finished call and rollout is already in the folder.
    """
    watch = _Watch(console=console, ending=ending)
    watch.look_for_parent()
    threading.Thread(target=watch.run, daemon=True).start()
    handled = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, watch.on_signal) for number in handled}
    try:
        yield watch.stop
    except Interrupted:  # an interrupted backbone does not know the reason
        watch.stop.check()
        raise
    finally:
        watch.over.set()
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(kw_only=True)
class _Watch:
    """A thread that waits for stop requests, because a signal handler may do very little."""

    console: Console
    ending: Ending
    stop: Stop = field(default_factory=Stop)
    over: threading.Event = field(default_factory=threading.Event)
    _signalled: bool = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._signalled and not self.ending.owns_process:
            raise KeyboardInterrupt
        if self._signalled:
            os._exit(EXIT_INTERRUPTED)
        self._signalled = True
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
                finally:
                    os._exit(EXIT_INTERRUPTED)
