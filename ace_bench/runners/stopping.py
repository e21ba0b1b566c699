"""A request to end a run early: once it is made, every new call is refused."""

from __future__ import annotations

from queue import Empty, SimpleQueue

from ace_bench.core.errors import Stopped


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
