"""The fork server: one process that has the engine loaded and forks a fresh environment server for every episode.

    python -m engine_side.serve ROOT FOLDER TASK

It loads the engine and runs ``TASK`` once, which takes seconds; after that, forking a server takes a fraction of a
second. A server is the two processes of an episode (see ``episode``); a monitor process behind them kills both with
everything they started. ``ROOT`` is a data root without ground truth. What episodes saved is evaluated in forks, too
(see ``score``). No agent code ever runs in this process.

Requests come as JSON lines on standard input, a Unix socket:

* ``{"start": id, "uids": [.., ..], "memory": bytes, "timeout": seconds}`` starts a server, its two processes as these
  users (``null``: as this one). The line carries a descriptor, the server's end of its connection to the harness. Its
  task is in the file ``FOLDER/tasks/<id>`` and not in the request, because servers inherit the memory of this process.
* ``{"score": id, "request": file}`` evaluates; the file holds the request of ``score.evaluate``.
* ``{"end": id}`` ends a server or an evaluation.

Events go to standard output:

* ``{"ready": true}``: the engine is loaded.
* ``{"id": .., "layers": [..]}`` or ``{"id": .., "error": ..}``: a server accepts code, or could not start.
* ``{"id": .., "status": ..}``: a server and all its processes have ended (the return code of the world's process).
* ``{"scored": id, "answer": ..}``: the answer of an evaluation, ``null`` where it has none.

When standard input closes, everything ends and ``FOLDER`` is removed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from .episode import Setup, World
from .loading import load
from .processes import CHUNK, close_all_but, end_tree, run_in_fork
from .score import Cancelled, evaluate
from .shared import Bounds, adopt_orphans, clear, die_with_parent, libraries

_MONITOR_LOST = {"status": -signal.SIGKILL, "error": "the process that watches it failed or was killed"}
"""The event for a server whose monitor ended without a message; the server ends with its monitor."""


class ForkServer:
    """Starts monitors and evaluations, and passes on their messages as events.

    Each is a child process connected by a socket pair, its control socket: shutting it down for writing asks the child
    to end.
    """

    def __init__(self, root: str, folder: str):
        self._root = root
        self._folder = Path(folder)
        self._children: dict[int, int] = {}
        self._sockets: dict[int, int] = {}
        self._scoring: set[int] = set()
        self._final: dict[int, Mapping[str, Any]] = {}
        self._connections: list[int] = []
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Handle requests until standard input closes."""
        stdin = socket.socket(fileno=sys.stdin.fileno())
        self._selector.register(stdin, selectors.EVENT_READ, None)
        pending = b""
        _send_event({"ready": True})
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    key.data()
                    continue
                received, connections, _, _ = socket.recv_fds(stdin, CHUNK, 1)
                self._connections += connections
                if not received:
                    return
                *lines, pending = (pending + received).split(b"\n")
                for line in lines:
                    self._handle(json.loads(line))

    def end(self) -> None:
        """End all servers and evaluations, wait for them, and remove the folder."""
        for control in self._sockets.values():
            os.close(control)
        for number in self._scoring:
            os.kill(self._children[number], signal.SIGKILL)
        for child in self._children.values():
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        clear(self._folder)

    def _handle(self, request: Mapping[str, Any]) -> None:
        if "start" in request:
            self._start(request)
        elif "score" in request:
            self._score(request)
        elif request["end"] in self._sockets:
            # The child sees its side close for reading, and ends what it started before it ends itself.
            _shut_down(self._sockets[request["end"]])

    def _start(self, request: Mapping[str, Any]) -> None:
        number = request["start"]
        with socket.socket(fileno=self._connections.pop(0)) as harness:
            work = partial(_monitor, harness=harness, root=Path(self._root), folder=self._folder, request=request)
            self._fork(number, work, partial(self._on_monitor, number))

    def _score(self, request: Mapping[str, Any]) -> None:
        number, parent = request["score"], os.getpid()
        self._scoring.add(number)
        self._fork(
            number, lambda control: _score(control, parent, request), partial(self._on_score, number, bytearray())
        )

    def _fork(self, number: int, work: Callable[[int], None], on_message: Callable[[], None]) -> None:
        """Fork a child that does the work; ``on_message`` is called when it has sent something or has ended."""
        our_end, child_end = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        child = os.fork()
        if child == 0:
            for descriptor in (our_end, *self._sockets.values()):
                os.close(descriptor)
            run_in_fork(lambda: work(child_end))
        os.close(child_end)
        self._sockets[number], self._children[number] = our_end, child
        self._selector.register(our_end, selectors.EVENT_READ, on_message)

    def _on_monitor(self, number: int) -> None:
        message = json.loads(os.read(self._sockets[number], CHUNK) or "null")
        if message is None:
            self._reap(number)
            message = self._final.pop(number, _MONITOR_LOST)
        elif "status" in message:  # the last message: passed on once the monitor itself has ended
            self._final[number] = message
            return
        _send_event({"id": number, **message})

    def _on_score(self, number: int, received: bytearray) -> None:
        message = os.read(self._sockets[number], CHUNK)
        received += message
        if not message:
            self._reap(number)
            self._scoring.remove(number)
            _send_event({"scored": number, "answer": _parse(received)})

    def _reap(self, number: int) -> None:
        control = self._sockets.pop(number)
        self._selector.unregister(control)
        os.close(control)
        os.waitpid(self._children.pop(number), 0)


def _parse(text: bytearray) -> Any:
    """Parse JSON; ``None`` if the process that wrote it was killed before the end."""
    with suppress(ValueError):
        return json.loads(text)


def _score(control: int, parent: int, request: Mapping[str, Any]) -> None:
    """Evaluate what an episode saved and send the answer."""
    die_with_parent(parent)
    with suppress(Cancelled):
        answer = json.dumps(evaluate(json.loads(Path(request["request"]).read_bytes()), control)).encode()
        for start in range(0, len(answer), CHUNK):
            os.write(control, answer[start : start + CHUNK])
    os._exit(0)


def _setup(root: Path, folder: Path, request: Mapping[str, Any]) -> Setup:
    """Make the folders of an episode. Only the world's process may read databases, and only its own task's."""
    file = folder / "tasks" / str(request["start"])
    task = file.read_text()
    file.unlink()
    episode = folder / "episodes" / str(request["start"])
    episode.mkdir()
    episode.chmod(0o711)
    data = root / "data"
    readable_paths = [*libraries(), sys.prefix, str(data / "api_docs"), str(data / "version.txt")]
    databases = [str(data / "base_dbs"), str(data / "tasks" / task)]
    world, interpreter = request["uids"]
    return Setup(
        task=task,
        timeout=request["timeout"],
        world=_bounds(episode / "world", [*readable_paths, *databases], world, request["memory"]),
        interpreter=_bounds(episode / "agent", readable_paths, interpreter, request["memory"]),
    )


def _bounds(folder: Path, readable_paths: Sequence[str], uid: int | None, memory: int) -> Bounds:
    folder.mkdir(0o700)
    if uid is not None:
        os.chown(folder, uid, uid)
    return Bounds(folder=str(folder), readable=readable_paths, uid=uid, memory=memory)


def _monitor(control: int, *, harness: socket.socket, root: Path, folder: Path, request: Mapping[str, Any]) -> None:
    """Run one server: kill its process tree when it dies or is to end, and report its exit status."""
    adopt_orphans()
    setup = _setup(root, folder, request)
    reading, writing = os.pipe()
    server = os.fork()
    if server == 0:
        run_in_fork(lambda: _serve(setup, harness, writing))
    os.close(writing)
    harness.close()
    try:
        _watch(server, control, reading)
    finally:
        status = end_tree(server)
        with suppress(BrokenPipeError):
            os.write(control, json.dumps({"status": status}).encode())
        os._exit(0)


def _watch(server: int, control: int, reading: int) -> None:
    """Pass on how the server started, and return once it has died or is to end."""
    with selectors.DefaultSelector() as selector:
        for descriptor in (control, reading, os.pidfd_open(server)):
            selector.register(descriptor, selectors.EVENT_READ)
        while reading in {key.fd for key, _ in selector.select()}:
            selector.unregister(reading)
            os.write(control, os.read(reading, CHUNK) or b'{"error": "it ended while it started"}')


def _serve(setup: Setup, harness: socket.socket, started: int) -> None:
    """Serve one episode, after reporting in the pipe ``started`` how it started."""
    monitor = os.getppid()
    os.setsid()
    close_all_but(harness.fileno(), started)
    try:
        world = World(setup, monitor)
        os.write(started, json.dumps({"layers": world.layers}).encode())
    except BaseException:
        os.write(started, json.dumps({"error": traceback.format_exc()[-4000:]}).encode())
        raise
    os.close(started)
    try:
        world.serve(harness)
    finally:
        world.exit()


def _send_event(event: Mapping[str, Any]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(event).encode() + b"\n")


def _shut_down(control: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(control)) as copy:
        copy.shutdown(socket.SHUT_WR)


def _exit_on_signal(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Load the engine, then handle requests; whatever happens, end all processes and remove the folder."""
    root, folder, task = sys.argv[1:]
    # Agent code imports by name: it must not find the folder that this package was imported from.
    sys.path.remove(os.environ.pop("PYTHONPATH"))
    signal.signal(signal.SIGTERM, _exit_on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fork_server = ForkServer(root, folder)
    try:
        load(task, Path(folder) / "warm-up")
        fork_server.run()
    except BrokenPipeError:
        pass
    finally:
        fork_server.end()


if __name__ == "__main__":
    main()
