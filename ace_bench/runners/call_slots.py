"""Limits how many calls are in flight over all runs of a process, and decides which waiting call goes next.

A server does not know which call holds up the most work, so calls wait here, in order of their critical path. While
requests wait in the server, the limit is the number of requests that it runs plus a small reserve, so that the server
always has the next one at hand. The limit grows when no request waits in the server and calls wait here. Otherwise it
stays unchanged, so that it does not oscillate.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import count
from math import ceil, inf
from typing import ClassVar

from ace_bench.core.backbones import Backbone, LoadReporting
from ace_bench.core.types import ServerLoad

_LOOK_S = 0.5
"""Seconds between checks while a call waits."""
_RESERVE = 32
"""The reserve is one waiting call for this many running calls, and at least one."""
_GROWTH = 4
"""The limit grows by one call for this many calls in flight."""


class LimitRule:
    """Decides how many calls may be in flight, after each look at the load of their server."""

    def __init__(self) -> None:
        self._share: int | None = None

    def limit(self, load: ServerLoad | None, *, held: int, waiting: int, now: float) -> float:
        """Return the limit that follows the limit ``now``; ``held`` calls are in flight, and ``waiting`` wait here.

        Requests wait for a moment when they arrive, or while a burst of prompts is read. So the limit shrinks only
        after two looks in a row, to the larger share that they show. Other programs may also use the server. We assume
        that our calls have the same share of its queue as of all its requests. A server that reports no load has no
        limit.
        """
        before, self._share = self._share, None
        if load is None:
            return inf
        reserve = max(1, load.running // _RESERVE)
        if load.waiting > 2 * reserve:
            self._share = ceil(held * load.running / (load.running + load.waiting))
            return now if before is None else max(before, self._share) + reserve
        if load.waiting == 0 and waiting:
            return held + max(1, held // _GROWTH)
        return now


class Slots:
    """The slots for the calls of this process.

    There are ``number`` of them (``None``: no limit), and fewer while the server is full. ``limit`` is how many there
    are now. ``peak`` is the most that were held at once.
    """

    LOOK_S: ClassVar[float] = 1.0
    """Seconds between looks at the load of a server."""
    RARE_LOOK_S: ClassVar[float] = 60.0
    """Seconds between looks at a server that reported no load."""

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
        """Wait for a slot, hold it, and yield the seconds waited.

        The waiting call with the highest ``priority`` gets the next slot. The priority is how many seconds of calls
        still follow this one, one after another. ``check`` is called while waiting and may raise.
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

        If calls go to several servers, only ``number`` limits them, because one load says nothing about the others.
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


@contextmanager
def queue_kept_here(slots: Slots | None, backbones: Collection[Backbone]) -> Iterator[None]:
    """Limit the slots of this process by the load of the server that answers all calls of a run.

    Nothing is limited if calls go to several servers, or to one that reports no load.
    """
    reporting = {backbone.server: backbone for backbone in backbones if isinstance(backbone, LoadReporting)}
    is_alone = len(reporting) == 1 and all(isinstance(backbone, LoadReporting) for backbone in backbones)
    if not is_alone or slots is None:
        yield
        return
    ((server, reporter),) = reporting.items()
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=[slots, server, reporter.load, ended], name="server load", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(slots: Slots, server: str, load: Callable[[], ServerLoad | None], ended: threading.Event) -> None:
    while not ended.wait(Slots.LOOK_S):
        slots.look(server, load)
