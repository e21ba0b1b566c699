"""Environment servers, a fresh process for each episode, all forked from one process that has the engine loaded.

That process, the fork server (``engine_side.serve``), also evaluates in forks what episodes saved.
"""

from __future__ import annotations

import itertools
import queue
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

from ace_bench.core.confine import own_user
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.scratch import clear
from ace_bench.core.types import Fault, Record
from ace_bench.tasks.appworld.engine import EngineProcess, EngineSettings
from ace_bench.tasks.appworld.engine_side.processes import INTERPRETER_KILLED

_KILLED = (None, -signal.SIGKILL, INTERPRETER_KILLED)
"""Statuses of a server that was killed: its monitor, its world, or the interpreter that the world passes on."""
LOADING_S = 300.0
"""The engine may take this many seconds to load."""
SERVER_S = 60.0
"""Most seconds that a server may take to start or to end; a fork usually takes a fraction of a second."""


class Servers:
    """Runs the fork server; safe between threads. ``root`` is a data root without ground truth.

    All its files are in ``folder``, which the fork server removes when it ends.
    """

    def __init__(self, settings: EngineSettings, *, root: Path, folder: Path):
        self._folder = folder
        self._engine = settings.engine.folder
        self._memory = settings.memory
        self._numbers = itertools.count(1)
        self._servers: dict[int, Server] = {}
        self._answers: dict[int, queue.SimpleQueue[Record | None]] = {}
        self._ready = Event()
        self.ended = Event()
        """Set once the fork server has ended."""
        (folder / "tasks").mkdir(mode=0o700)
        (folder / "episodes").mkdir()
        (folder / "episodes").chmod(0o711)
        self._fork_server = EngineProcess(
            settings.engine.command("serve", str(root), str(folder), settings.task),
            environment=settings.engine.environment(root, folder),
            log=folder / "serve.log",
            on_event=self._on_event,
        )

    def wait(self) -> None:
        """Wait until servers can be started; raises ``ConfigError`` if the engine does not load."""
        if not self._ready.wait(LOADING_S) or self.ended.is_set():
            stderr = self._fork_server.stderr()
            reason = (
                f": {stderr}" if stderr else " and wrote nothing to stderr; set it up again with `ace-bench appworld`"
            )
            raise ConfigError(f"AppWorld's engine failed to start{reason}")

    def start(self, task: str, *, timeout: int) -> Server:
        """Start a server for one episode of a task; raises ``RolloutFault`` if that fails.

        ``timeout`` is the engine's limit for a piece of code, in seconds.
        """
        number = next(self._numbers)
        (self._folder / "tasks" / str(number)).write_text(task)
        users = own_user(self._engine), own_user(self._engine)
        connection, server_end = socket.socketpair()
        server = self._servers[number] = Server(
            connection=connection,
            folder=self._folder / "episodes" / str(number),
            request_end=partial(self._fork_server.send, {"end": number}),
        )
        with server_end:
            request = {"start": number, "uids": users, "memory": self._memory, "timeout": timeout}
            self._fork_server.send(request, server_end.fileno())
        if self.ended.is_set() or not server.started.wait(SERVER_S):
            connection.close()
            raise task_fault("server", "no environment server was started")
        if server.problem:
            server.close()
            raise task_fault("server", f"an environment server did not start: {server.problem}")
        return server

    def score(self, request: Path, *, seconds: float) -> Record | None:
        """Evaluate as the file ``request`` says (see ``engine_side.score``).

        Returns the answer, or ``None`` without one within ``seconds``.
        """
        number = next(self._numbers)
        answer = self._answers[number] = queue.SimpleQueue()
        self._fork_server.send({"score": number, "request": str(request)})
        try:
            return None if self.ended.is_set() else answer.get(timeout=seconds)
        except queue.Empty:
            self._fork_server.send({"end": number})
            return None
        finally:
            self._answers.pop(number, None)

    def close(self) -> None:
        """End all servers and the fork server."""
        self._fork_server.close()

    def _on_event(self, event: Record | None) -> None:
        if event is None:
            self._ready.set()
            self.ended.set()
            for server in list(self._servers.values()):
                server.problem = server.problem or "the engine's fork server ended"
                server.started.set()
                server.ended.set()
            for answer in list(self._answers.values()):
                answer.put(None)
        elif "ready" in event:
            self._ready.set()
        elif "scored" in event:
            if waiting := self._answers.get(event["scored"]):
                waiting.put(event["answer"])
        else:
            self._update(event)

    def _update(self, event: Record) -> None:
        server = self._servers[event["id"]]
        if "status" in event:
            server.status = event["status"]
            server.ended.set()
            del self._servers[event["id"]]
        server.problem = event.get("error", server.problem)
        server.layers = tuple(event.get("layers", server.layers))
        server.started.set()


@dataclass(kw_only=True, eq=False)
class Server:
    """The server of one episode. Its processes write to ``folder`` only; ``layers`` names what confines them.

    Events of the fork server set all but the first three; ``status`` is its exit status as a return code.
    """

    connection: socket.socket
    folder: Path
    request_end: Callable[[], None]
    layers: tuple[str, ...] = ()
    problem: str = ""
    status: int | None = None
    started: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def end(self) -> None:
        """Kill the server and all its processes and wait for their end; safe to call more than once."""
        self.request_end()
        if not self.ended.wait(SERVER_S):
            raise task_fault("server", "an environment server cannot be ended")

    def was_killed(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the server's end; return whether it was killed from outside.

        Agent code cannot send SIGKILL, not even to its own process, so another exit status, or none, means that the
        agent's code broke the server.
        """
        return self.ended.wait(seconds) and self.status in _KILLED

    def close(self) -> None:
        """End the server and remove its files."""
        self.connection.close()
        self.end()
        clear(self.folder)


def task_fault(kind: str, message: str) -> RolloutFault:
    """Return the fault for an environment that failed through no doing of the agent."""
    return RolloutFault(Fault(owner="task", kind=kind, message=message))
