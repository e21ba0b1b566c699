"""One warm process that starts a fresh environment server for every episode, by forking.

    python -m engine_side.serve ROOT FOLDER TASK

It loads the engine and plays ``TASK`` once, which takes seconds, puts that world away, and then starts servers in a
fraction of a second: each is a copy of the process as it stood, behind a keeper that ends it with everything it
started. A server offers the engine's own HTTP interface on a Unix socket ``FOLDER/sockets/<socket>`` that only the user
of this process can reach. ``ROOT`` is a data root without ground truth. What episodes saved is evaluated by forks, too
(see ``score``): no agent code ever ran in this process.

Orders come as JSON lines on standard input: ``{"start": id, "socket": name, "uid": .., "memory": bytes}``,
``{"score": id, "order": file}`` with what ``score.evaluated`` wants, and ``{"end": id}`` for either. The server's task
stands in ``FOLDER/tasks/<id>``: no task is named in an order, as whatever this process heard stays in the memory that
servers start with. News go to standard output:
``{"ready": true}``, ``{"id": .., "layers": [..]}`` or ``{"id": .., "error": ..}`` once a server can be talked to or
cannot start, ``{"id": .., "status": ..}`` when it and its processes are gone (as a return code: -9 is SIGKILL), and
``{"scored": id, "answer": ..}``. When standard input closes, everything ends and ``FOLDER`` is removed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from .loading import load, server_config
from .process_tree import end_tree
from .score import Abandoned, evaluated
from .shared import Bounds, adopt_orphans, clear, confine, die_with_parent, libraries

_MESSAGE = 1 << 16
"""Most bytes of a message between a server, its keeper and this process."""

_KEEPER_LOST = {"status": -signal.SIGKILL, "error": "the process that watches it failed or was killed"}
"""What is said of a server whose keeper ended without a word; the server ends with its keeper."""


class ForkServer:
    """The warm process: it starts keepers and evaluations, and passes on what they say."""

    def __init__(self, root: str, folder: str):
        self._root = root
        self._folder = Path(folder)
        self._children: dict[int, int] = {}
        self._leashes: dict[int, int] = {}
        self._scoring: set[int] = set()
        self._fates: dict[int, Mapping[str, Any]] = {}
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Take orders until standard input closes."""
        stdin = sys.stdin.fileno()
        self._selector.register(stdin, selectors.EVENT_READ, None)
        pending = b""
        _say({"ready": True})
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    key.data()
                    continue
                received = os.read(stdin, _MESSAGE)
                if not received:
                    return
                *lines, pending = (pending + received).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))

    def end(self) -> None:
        """End all servers and evaluations, wait for them, and remove the folder."""
        for leash in self._leashes.values():
            os.close(leash)
        for number in self._scoring:
            os.kill(self._children[number], signal.SIGKILL)
        for child in self._children.values():
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        clear(self._folder)

    def _obey(self, order: Mapping[str, Any]) -> None:
        if "start" in order:
            self._start(order)
        elif "score" in order:
            self._score(order)
        elif order["end"] in self._leashes:
            # The keeper or the evaluation sees its side close for reading, and ends what it started before it goes.
            _shut(self._leashes[order["end"]])

    def _start(self, order: Mapping[str, Any]) -> None:
        number = order["start"]
        work = partial(_keep, root=Path(self._root), folder=self._folder, order=order)
        self._fork(number, work, partial(self._hear, number))

    def _score(self, order: Mapping[str, Any]) -> None:
        number, warm = order["score"], os.getpid()
        self._scoring.add(number)
        self._fork(number, lambda leash: _score(leash, warm, order), partial(self._collect, number, bytearray()))

    def _fork(self, number: int, work: Callable[[int], None], hear: Callable[[], None]) -> None:
        """Fork a child that does the work; ``hear`` is called when it has something to say or is gone."""
        ours, theirs = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        child = os.fork()
        if child == 0:
            for descriptor in (ours, *self._leashes.values()):
                os.close(descriptor)
            _forever(lambda: work(theirs))
        os.close(theirs)
        self._leashes[number], self._children[number] = ours, child
        self._selector.register(ours, selectors.EVENT_READ, hear)

    def _hear(self, number: int) -> None:
        message = json.loads(os.read(self._leashes[number], _MESSAGE) or "null")
        if message is None:
            self._bury(number)
            message = self._fates.pop(number, _KEEPER_LOST)
        elif "status" in message:  # a keeper's last word, passed on once it is gone, too
            self._fates[number] = message
            return
        _say({"id": number, **message})

    def _collect(self, number: int, heard: bytearray) -> None:
        message = os.read(self._leashes[number], _MESSAGE)
        heard += message
        if not message:
            self._bury(number)
            self._scoring.remove(number)
            _say({"scored": number, "answer": _whole(heard)})

    def _bury(self, number: int) -> None:
        leash = self._leashes.pop(number)
        self._selector.unregister(leash)
        os.close(leash)
        os.waitpid(self._children.pop(number), 0)


def _whole(text: bytearray) -> Any:
    """Read JSON that ends early where the process that wrote it was killed."""
    with suppress(ValueError):
        return json.loads(text)


def _forever(work: Callable[[], None]) -> None:
    """Do the work of a forked process and never return into the copy of its parent's stack."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _score(leash: int, warm: int, order: Mapping[str, Any]) -> None:
    """Evaluate what an episode saved, and tell."""
    die_with_parent(warm)
    with suppress(Abandoned):
        answer = json.dumps(evaluated(json.loads(Path(order["order"]).read_bytes()), leash)).encode()
        for start in range(0, len(answer), _MESSAGE):
            os.write(leash, answer[start : start + _MESSAGE])
    os._exit(0)


def _bounds(root: Path, folder: Path, order: Mapping[str, Any]) -> Bounds:
    """Let a server read the base of all worlds and its own task, which stands in a file."""
    note = folder / "tasks" / str(order["start"])
    task = note.read_text()
    note.unlink()
    shown = [str(root / "data" / name) for name in ("api_docs", "base_dbs", "version.txt", f"tasks/{task}")]
    return Bounds(
        folder=str(folder / "episodes" / str(order["start"])),
        readable=[*shown, *libraries(), sys.prefix],
        uid=order["uid"],
        memory=order["memory"],
    )


def _keep(leash: int, *, root: Path, folder: Path, order: Mapping[str, Any]) -> None:
    """Hold one server: end its whole process tree when it dies or when the leash is let go, and report how it ended."""
    adopt_orphans()
    bounds = _bounds(root, folder, order)
    address = str(folder / "sockets" / order["socket"])
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(8)
    os.mkdir(bounds.folder, 0o700)
    if bounds.uid is not None:
        os.chown(bounds.folder, bounds.uid, bounds.uid)
    reading, writing = os.pipe()
    server = os.fork()
    if server == 0:
        _forever(lambda: _serve(listening, writing, bounds))
    os.close(writing)
    listening.close()
    try:
        _watch(server, leash, reading)
    finally:
        status = end_tree(server)
        os.unlink(address)
        with suppress(BrokenPipeError):
            os.write(leash, json.dumps({"status": status}).encode())
        os._exit(0)


def _watch(server: int, leash: int, reading: int) -> None:
    """Pass on how the server started, and return once it has died or the leash is let go."""
    with selectors.DefaultSelector() as selector:
        for descriptor in (leash, reading, os.pidfd_open(server)):
            selector.register(descriptor, selectors.EVENT_READ)
        while reading in {key.fd for key, _ in selector.select()}:
            selector.unregister(reading)
            os.write(leash, os.read(reading, _MESSAGE) or b'{"error": "it ended while it started"}')


def _serve(listening: socket.socket, writing: int, bounds: Bounds) -> None:
    """Serve one episode: from here on the process is alone, and agent code runs in it."""
    from uvicorn import Server

    keeper = os.getppid()
    try:
        os.setsid()
        _close_all_but(listening.fileno(), writing)
        server = Server(server_config())
        layers = confine(bounds, keeper)
        os.write(writing, json.dumps({"layers": layers}).encode())
    except BaseException:
        os.write(writing, json.dumps({"error": traceback.format_exc()[-4000:]}).encode())
        raise
    os.close(writing)
    server.run(sockets=[listening])
    os._exit(0)


def _close_all_but(*kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def _say(record: Mapping[str, Any]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(record).encode() + b"\n")


def _shut(leash: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(leash)) as copy:
        copy.shutdown(socket.SHUT_WR)


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Warm up, then take orders; whatever happens, leave nothing behind."""
    root, folder, task = sys.argv[1:]
    # Agent code imports by name: the folder that this package is found in is not for it.
    sys.path.remove(os.environ.pop("PYTHONPATH"))
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warm = ForkServer(root, folder)
    try:
        load(task, Path(folder) / "warm-up")
        warm.run()
    except BrokenPipeError:
        pass
    finally:
        warm.end()


if __name__ == "__main__":
    main()
