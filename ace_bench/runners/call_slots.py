"""Limits how many calls are in flight over all runs of a process, and decides which waiting call goes next."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import inf
from typing import ClassVar

from ace_bench.core.types import ServerLoad
from ace_bench.runners.limit_rule import LimitRule

_LOOK_S = 0.5
"""Seconds between checks while a call waits."""


class Slots:
    """``number`` slots for the calls of this process, ``None`` without a limit; fewer while a server is at its limit.

    ``limit`` is their number at the moment, ``peak`` the most that were held at once.
    """

    LOOK_S: ClassVar[float] = 1.0
    """Seconds between looks at the load of a server."""
    RARE_LOOK_S: ClassVar[float] = 60.0
    """The same where the last look showed nothing."""

    def __init__(self, number: int | None):
        self.peak = 0
        self._number = inf if number is None else number
        self.limit: float = self._number
        self._held = 0
        self._rule, self._servers, self._next_look = LimitRule(), set[str](), 0.0
        self._lock = threading.Lock()
        self._waiting: list[tuple[float, int, threading.Lock]] = []
        self._arrivals = count()

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None] = lambda: None) -> Iterator[float]:
        """Hold a slot, once there is one, and yield the seconds waited; ``check`` is called meanwhile and may raise.

        Of the calls that wait, the one with the highest ``priority`` gets the next slot: the seconds of calls one after
        another that still follow it.
        """
        gate = threading.Lock()
        gate.acquire()
        request = (-priority, next(self._arrivals), gate)
        with self._lock:
            heapq.heappush(self._waiting, request)
            self._serve()
        waited = 0.0
        try:
            if not gate.acquire(blocking=False):
                began = time.monotonic()
                while not gate.acquire(timeout=_LOOK_S):
                    check()
                waited = round(time.monotonic() - began, 3)
            yield waited
        finally:
            with self._lock:
                if request in self._waiting:
                    self._waiting.remove(request)
                    heapq.heapify(self._waiting)
                else:
                    self._held -= 1
                self._serve()

    def look(self, server: str, load: Callable[[], ServerLoad | None]) -> None:
        """Adapt the limit to the load of the server that calls go to, once a second however many runs look.

        Where several servers were looked at, no limit but the number applies: one cannot speak for the others.
        """
        with self._lock:
            self._servers.add(server)
            now = time.monotonic()
            if now < self._next_look or not self._held:
                return
            self._next_look = now + 0.9 * self.LOOK_S
        reported = load() if len(self._servers) == 1 else None
        with self._lock:
            if reported is None:  # it may never report anything, and would log each look as an error
                self._next_look = now + self.RARE_LOOK_S
            limit = self._rule.limit(reported, held=self._held, waiting=len(self._waiting), now=self.limit)
            self.limit = min(self._number, limit)
            self._serve()

    def _serve(self) -> None:
        while self._held < self.limit and self._waiting:
            self._held += 1
            self.peak = max(self.peak, self._held)
            heapq.heappop(self._waiting)[2].release()
