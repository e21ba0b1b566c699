"""Ends a run at a signal."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from ace_bench.core.backbones import Backbone, Interruptible
from ace_bench.core.errors import Interrupted
from ace_bench.runners.host import EXIT_INTERRUPTED, LIMIT_S, Host, Signals
from ace_bench.runners.limits import Stop

_GRACE_S, _ABANDON_S = 2.0, 0.5
"""Seconds for pending replies to arrive, and for the runs beside an abandoned one to note that they stopped."""
_PATIENCE_S = 60.0
"""Seconds for pending replies to arrive when the run stops by itself."""
_LOOK_S = 1.0
"""Seconds until the thread notices that the run is over."""


@contextmanager
def stop_on_signals(
    host: Host, backbones: Iterable[Backbone], abandon: Callable[[Interrupted], object]
) -> Iterator[Stop]:
    """Request a stop at the first SIGINT or SIGTERM; a second one ends the process at once.

    The run ends within five seconds; ``abandon`` records that it stopped where it would take longer. Nothing is lost,
    because every finished call and rollout is already in the folder. Without ``owns_process`` the process is never
    ended: a second Ctrl-C is Python's ``KeyboardInterrupt``.
    """
    watch = _Watch(host=host, backbones=backbones, abandon=abandon)
    threading.Thread(target=watch.run, daemon=True).start()
    signals = host.signals or Signals()
    try:
        with nullcontext() if host.signals else signals.handled(), signals.passed_to(watch.on_signal):
            yield watch.stop
    except Interrupted:  # an interrupted backbone does not know the reason
        watch.stop.check()
        raise
    finally:
        watch.over.set()


@dataclass(kw_only=True)
class _Watch:
    """A thread that waits for stop requests, because a signal handler may do very little."""

    host: Host
    backbones: Iterable[Backbone]
    abandon: Callable[[Interrupted], object]
    stop: Stop = field(default_factory=Stop)
    over: threading.Event = field(default_factory=threading.Event)

    def on_signal(self, times: int) -> None:
        """Request a stop; the second time end the process."""
        if times > 1 and not self.host.owns_process:
            raise KeyboardInterrupt
        if times > 1:
            os._exit(EXIT_INTERRUPTED)
        self.stop.request(Interrupted("interrupted by the user"))

    def run(self) -> None:
        """Serve requests until the run is over."""
        while not self.over.is_set():
            reason = self.stop.next_request(_LOOK_S)
            if reason is None:
                continue
            for backbone in self.backbones:
                if isinstance(backbone, Interruptible):
                    backbone.interrupt(_GRACE_S if isinstance(reason, Interrupted) else _PATIENCE_S)
            if isinstance(reason, Interrupted):
                self._end_within_limit(reason)

    def _end_within_limit(self, reason: Interrupted) -> None:
        try:
            self.host.console.print("Stopping, within five seconds; once more to stop at once.", highlight=False)
        finally:  # the terminal may be closed
            if self.host.owns_process and not self.over.wait(LIMIT_S):
                try:
                    self.abandon(reason)
                    time.sleep(_ABANDON_S if self.host.signals else 0.0)
                finally:
                    os._exit(EXIT_INTERRUPTED)
