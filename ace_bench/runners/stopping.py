"""What ends a run early: a request to stop, and too many unanswered calls in a row."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import BackboneUnavailable, Stopped
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

    def answered(self, backbone: Backbone) -> None:
        """Record an answered call."""
        if self._in_a_row[id(backbone)]:  # seldom; most calls need not take the lock
            with self._lock:
                self._in_a_row[id(backbone)] = 0

    def unanswered(self, backbone: Backbone, fault: Fault) -> None:
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
