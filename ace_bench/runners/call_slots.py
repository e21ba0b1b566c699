"""A limit of calls in flight over all runs of one command, such as a sweep: its runs take slots from one server.

Runs in the process of the command take them directly. A run in another process connects for each call and keeps the
connection while the call is in flight: the connections of a process that dies close with it, so its slots become free.
"""

from __future__ import annotations

import heapq
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from math import inf
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from typing import ClassVar, Protocol

from ace_bench.core.errors import ConfigError, Stopped
from ace_bench.core.scratch import clear_abandoned, scratch_folder
from ace_bench.core.types import ServerLoad
from ace_bench.runners.limit_rule import LimitRule

ADDRESS = "ACE_BENCH_CALL_SLOTS"
"""The environment variable by which a command tells its runs where the slots are."""

_SETTING = "max_calls_in_flight"
_SCRATCH = "slots"
_GRANTED = b"+"
_LOOK_S = 0.5
_POLL_S = 0.05
"""How soon the server notices that it is to end."""
_LONGEST_PATH = 90
"""Operating systems limit the path of a socket to about 100 bytes."""


class CallSlots(Protocol):
    """Limits how many calls are in flight at the same time."""

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None]) -> Iterator[float]:
        """Hold a slot, once there is one, and yield the seconds waited; ``check`` is called meanwhile and may raise.

        Of the calls that wait, the one with the highest ``priority`` gets the next slot: the seconds of calls one after
        another that still follow it.
        """
        ...


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
        """Hold a slot; yield the seconds waited."""
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


class SharedSlots:
    """The slots of the ``SlotServer`` at an address."""

    def __init__(self, address: str):
        self._address = address

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None]) -> Iterator[float]:
        """Hold a slot; raises ``Stopped`` if the command that shares them has ended."""
        began = time.monotonic()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(self._address)
                connection.sendall(f"{priority:.3f}\n".encode())
                connection.settimeout(_LOOK_S)
                while (granted := _receive(connection)) is None:
                    check()
            except OSError as error:
                raise Stopped("the command that limits the calls of its runs has ended") from error
            if granted != _GRANTED:
                raise Stopped("the command that limits the calls of its runs has ended")
            yield round(time.monotonic() - began, 3)


def _receive(connection: socket.socket) -> bytes | None:
    try:
        return connection.recv(1)
    except TimeoutError:
        return None


class SlotServer(ThreadingUnixStreamServer):
    """Gives slots to runs in other processes of this machine's user, by a socket in a folder of its own.

    It serves in threads, from ``__enter__`` to ``__exit__``. Runs in this process take ``slots`` directly.
    """

    daemon_threads, block_on_close, request_queue_size = True, False, 1024
    here: ClassVar[dict[str, Slots]] = {}
    """The slots of the servers of this process, by address."""

    def __init__(self, number: int):
        self.slots = Slots(number)
        clear_abandoned(_SCRATCH)
        self._scratch = ExitStack()
        short = None if len(tempfile.gettempdir()) < _LONGEST_PATH // 2 else "/tmp"
        self.address = str(self._scratch.enter_context(scratch_folder(_SCRATCH, parent=short)) / "slots")
        super().__init__(self.address, _Connection)
        self.open: set[socket.socket] = set()

    def __enter__(self) -> SlotServer:
        threading.Thread(target=self.serve_forever, args=[_POLL_S], name="call slots", daemon=True).start()
        self.here[self.address] = self.slots
        return self

    def __exit__(self, *_: object) -> None:
        del self.here[self.address]
        self.shutdown()
        self.server_close()
        for connection in tuple(self.open):  # runs that wait for a slot learn that there is none
            with suppress(OSError):  # the run may have ended
                connection.shutdown(socket.SHUT_RDWR)
        self._scratch.close()


class _Connection(BaseRequestHandler):
    """Gives a slot to a run, which closes its connection when its call is over."""

    server: SlotServer

    def handle(self) -> None:
        self.server.open.add(self.request)
        # A run that has ended, or sent no number, needs no slot.
        with suppress(OSError, ValueError), self.server.slots.acquire(float(self.request.recv(64))):
            self.request.send(_GRANTED)
            self.request.recv(1)

    def finish(self) -> None:
        self.server.open.discard(self.request)


def call_limit(words: Iterable[str]) -> int | None:
    """Return the setting ``max_calls_in_flight`` of a command line; raises ``ConfigError``."""
    given = [word.partition("=")[2] for word in words if word.startswith(f"{_SETTING}=")]
    if not given or given[-1] == "null":
        return None
    if not given[-1].isdecimal() or int(given[-1]) == 0:
        raise ConfigError(f"{_SETTING}={given[-1]} must be a whole number, 1 or more, or null")
    return int(given[-1])


def shares_slots() -> bool:
    """Whether the command that started this run limits the calls of all its runs."""
    return ADDRESS in os.environ


@contextmanager
def slots_for_runs(number: int | None) -> Iterator[None]:
    """Share ``number`` slots with the runs that this process starts, in it or in others; ``None``: no limit."""
    if number is None:
        yield
        return
    with SlotServer(number) as server:
        os.environ[ADDRESS] = server.address
        try:
            yield
        finally:
            del os.environ[ADDRESS]


@contextmanager
def slots_of_run(number: int | None) -> Iterator[CallSlots]:
    """Yield the slots of the command that started this run, or ``number`` slots of its own; ``None``: no limit."""
    address = os.environ.get(ADDRESS)
    if number is None or address is None:
        yield Slots(number)
    else:
        yield SlotServer.here.get(address) or SharedSlots(address)
