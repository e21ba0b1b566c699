"""The wish to end a run early: whoever has a reason says so, and every call that would begin then is refused."""

from __future__ import annotations

from queue import Empty, SimpleQueue

from ace_bench.core.errors import Stopped


class Stop:
    """Starts as no wish at all; the first reason stays. Safe to use from threads and signal handlers."""

    def __init__(self) -> None:
        self._reason: Stopped | None = None
        # The one queue that may be filled by a signal handler which interrupts another use of it; an event may not.
        self._requests: SimpleQueue[Stopped] = SimpleQueue()

    def request(self, reason: Stopped) -> None:
        """Ask for the end of the run."""
        self._reason = self._reason or reason
        self._requests.put(reason)

    def check(self) -> None:
        """Raise the reason where there is one."""
        if self._reason is not None:
            raise type(self._reason)(self._reason.reason)

    def next_request(self, timeout: float) -> Stopped | None:
        """Wait some seconds for a request that was not seen yet."""
        try:
            return self._requests.get(timeout=timeout)
        except Empty:
            return None
