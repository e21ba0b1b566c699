"""A limit of calls in flight over all runs of one command, such as a sweep: its runs take slots from one server.

Runs in the process of the command take them directly. A run in another process connects for each call and keeps the
connection while the call is in flight: the connections of a process that dies close with it, so its slots become free.
"""

from __future__ import annotations

import heapq
import os
import selectors
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import ClassVar, Protocol

from ace_bench.core.errors import ConfigError, Stopped
from ace_bench.core.scratch import clear_abandoned, scratch_folder

ADDRESS = "ACE_BENCH_CALL_SLOTS"
"""The environment variable by which a command tells its runs where the slots are."""

_SETTING = "max_calls_in_flight"
_SCRATCH = "slots"
_GRANTED = b"+"
_LOOK_S = 0.5
_LONGEST_PATH = 90
"""Operating systems limit the path of a socket to about 100 bytes."""
_BACKLOG = 1024


class CallSlots(Protocol):
    """Limits how many calls are in flight at the same time."""

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None]) -> Iterator[None]:
        """Hold a slot, once there is one; ``check`` is called while waiting and may raise.

        Of the calls that wait, the one with the highest ``priority`` gets the next slot: the seconds of calls one after
        another that still follow it.
        """
        ...


@dataclass(eq=False)
class _Request:
    """A call that waits for a slot or holds one; ``grant`` is called once, when it gets the slot."""

    grant: Callable[[], object]
    granted: bool = False
    over: bool = False


class Slots:
    """``number`` slots for the calls of this process. ``peak`` is the most slots that were held at once."""

    def __init__(self, number: int):
        self.peak = 0
        self._number = self._free = number
        self._lock = threading.Lock()
        self._waiting: list[tuple[float, int, _Request]] = []
        self._arrivals = count()

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None]) -> Iterator[None]:
        """Hold a slot."""
        gate = threading.Lock()
        gate.acquire()
        request = self.request(priority, gate.release)
        try:
            while not gate.acquire(timeout=_LOOK_S):
                check()
            yield
        finally:
            self.release(request)

    def request(self, priority: float, grant: Callable[[], object]) -> _Request:
        """Ask for a slot."""
        request = _Request(grant)
        with self._lock:
            heapq.heappush(self._waiting, (-priority, next(self._arrivals), request))
            self._serve()
        return request

    def release(self, request: _Request) -> None:
        """Give a slot back, or stop waiting for one."""
        with self._lock:
            request.over = True
            self._free += request.granted
            self._serve()

    def _serve(self) -> None:
        while self._free and self._waiting:
            request = heapq.heappop(self._waiting)[2]
            if not request.over:
                request.granted = True
                self._free -= 1
                self.peak = max(self.peak, self._number - self._free)
                request.grant()


class SharedSlots:
    """The slots of the ``SlotServer`` at an address."""

    def __init__(self, address: str):
        self._address = address

    @contextmanager
    def acquire(self, priority: float, check: Callable[[], None]) -> Iterator[None]:
        """Hold a slot; raises ``Stopped`` if the command that shares them has ended."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(self._address)
                connection.sendall(f"{priority:.3f}\n".encode())
                connection.settimeout(_LOOK_S)
                while (granted := _received(connection)) is None:
                    check()
            except OSError as error:
                raise Stopped("the command that limits the calls of its runs has ended") from error
            if granted != _GRANTED:
                raise Stopped("the command that limits the calls of its runs has ended")
            yield


def _received(connection: socket.socket) -> bytes | None:
    try:
        return connection.recv(1)
    except TimeoutError:
        return None


class SlotServer:
    """Gives slots to runs in other processes of this machine's user, by a socket in a folder of its own.

    It serves in a thread, from ``__enter__`` to ``__exit__``. Runs in this process take ``slots`` directly.
    """

    here: ClassVar[dict[str, Slots]] = {}
    """The slots of the servers of this process, by address."""

    def __init__(self, number: int):
        self.slots = Slots(number)
        clear_abandoned(_SCRATCH)
        self._scratch = ExitStack()
        folder = self._scratch.enter_context(scratch_folder(_SCRATCH, parent=_short_folder()))
        self.address = str(folder / "slots")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._open: dict[socket.socket, _Request | None] = {}
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="call slots", daemon=True)

    def __enter__(self) -> SlotServer:
        self._listener.bind(self.address)
        self._listener.listen(_BACKLOG)
        self._on_data(self._listener, self._accept)
        self._on_data(self._woken, self._end)
        self._thread.start()
        self.here[self.address] = self.slots
        return self

    def __exit__(self, *_: object) -> None:
        del self.here[self.address]
        self._wake.send(b"x")
        self._thread.join()
        for connection in (*self._open, self._wake):
            connection.close()
        self._selector.close()
        self._scratch.close()

    def _serve(self) -> None:
        while self._woken in self._open:
            for key, _ in self._selector.select():
                key.data()

    def _on_data(self, connection: socket.socket, read: Callable[[], None]) -> None:
        self._open[connection] = None
        self._selector.register(connection, selectors.EVENT_READ, read)

    def _close(self, connection: socket.socket) -> None:
        """Close a connection; its slot is free."""
        request = self._open.pop(connection)
        self._selector.unregister(connection)
        if request is not None:
            self.slots.release(request)
        connection.close()

    def _end(self) -> None:
        self._close(self._woken)

    def _accept(self) -> None:
        connection = self._listener.accept()[0]
        self._on_data(connection, partial(self._read, connection))

    def _read(self, connection: socket.socket) -> None:
        """Take what a run asks for; it closes its connection when its call is over."""
        data = b""
        with suppress(OSError):
            data = connection.recv(64)
        if data:
            self._open[connection] = self.slots.request(float(data), partial(_send_grant, connection))
        else:
            self._close(connection)


def _send_grant(connection: socket.socket) -> None:
    with suppress(OSError):  # the end of the connection is read next
        connection.send(_GRANTED)


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


def _short_folder() -> str | None:
    return None if len(tempfile.gettempdir()) < _LONGEST_PATH // 2 else "/tmp"


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
def slots_of_run(number: int | None) -> Iterator[CallSlots | None]:
    """Yield the slots of the command that started this run, or ``number`` slots of its own; ``None``: no limit."""
    address = os.environ.get(ADDRESS)
    if number is None:
        yield None
    elif address is None:
        yield Slots(number)
    else:
        yield SlotServer.here.get(address) or SharedSlots(address)
