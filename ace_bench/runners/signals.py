"""Ctrl-C, SIGTERM and the end of the parent process as a clean stop within seconds."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from rich.console import Console

from ace_bench.core.errors import Interrupted
from ace_bench.runners.stopping import Stop

EXIT_INTERRUPTED = 130
_PARENT = "ACE_BENCH_PARENT"
_FOLLOWER = "ends with its parent"

_GRACE_S, _LIMIT_S = 2.0, 4.5
"""How long replies under way may still arrive, and how long an interrupted run may take to end."""
_PATIENCE_S = 60.0
"""How long replies may still arrive where nobody waits for the end."""
_LOOK_S = 1.0


def end_with_this_process(environment: MutableMapping[str, str]) -> None:
    """Have runs that are started with this environment by this process stop when it ends, however that happens."""
    environment[_PARENT] = str(os.getpid())


def parent_process() -> int | None:
    """Return the process that this one is to end with, ``None`` where it stands for itself."""
    parent = int(os.environ.get(_PARENT, "0"))
    return None if parent in (0, os.getpid()) else parent


def end_after(parent: int) -> None:
    """End this process once its parent has ended and runs had time to stop.

    A sweep's worker would wait for further work for ever.
    """
    if all(thread.name != _FOLLOWER for thread in threading.enumerate()):
        threading.Thread(target=_follow, args=[parent], name=_FOLLOWER, daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    time.sleep(2 * _LIMIT_S)
    os._exit(EXIT_INTERRUPTED)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run comes to its end from outside.

    ``interrupt`` ends calls under way, after some seconds of grace; ``abandon`` writes down that the run stopped, where
    it did not end by itself and the process ends instead. ``parent`` is the process whose end ends the run.
    """

    interrupt: Callable[[float], None]
    abandon: Callable[[Interrupted], None]
    parent: int | None = None


@contextmanager
def stop_on_signals(console: Console, ending: Ending) -> Iterator[Stop]:
    """Ask for a stop at the first SIGINT or SIGTERM; a second one ends the process at once.

    The run ends within five seconds. Nothing is lost however it ends: every finished call and rollout is in the folder
    already.
    """
    watch = _Watch(console=console, ending=ending)
    watch.look_for_parent()
    threading.Thread(target=watch.run, daemon=True).start()
    handled = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, watch.on_signal) for number in handled}
    try:
        yield watch.stop
    except Interrupted:  # a backbone does not know why it was interrupted
        watch.stop.check()
        raise
    finally:
        watch.over.set()
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(kw_only=True)
class _Watch:
    """Waits for requests to stop in a thread of its own: a signal handler may hardly do anything."""

    console: Console
    ending: Ending
    stop: Stop = field(default_factory=Stop)
    over: threading.Event = field(default_factory=threading.Event)
    _signalled: bool = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._signalled:
            os._exit(EXIT_INTERRUPTED)
        self._signalled = True
        self.stop.request(Interrupted("interrupted by the user"))

    def look_for_parent(self) -> None:
        """Ask for a stop where the parent has ended: this process has another one then."""
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
        finally:  # nobody may be there any more to read it
            if not self.over.wait(_LIMIT_S):
                try:
                    self.ending.abandon(reason)
                finally:
                    os._exit(EXIT_INTERRUPTED)
