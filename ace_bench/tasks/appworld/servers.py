"""Environment servers, one fresh process an episode, all of them forked from one warm process (see ``serve``).

The same process evaluates, in forks of their own, what episodes saved.
"""

from __future__ import annotations

import itertools
import queue
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from ace_bench.core.confine import own_user
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.scratch import clear
from ace_bench.core.types import Fault, Record
from ace_bench.tasks.appworld.engine import Conditions
from ace_bench.tasks.appworld.engine_process import EngineProcess
from ace_bench.tasks.appworld.roots import is_open_to_others

WARM_UP_S = 300.0
"""Most seconds the engine may take to warm up."""
SERVER_S = 60.0
"""Most seconds a server may take to be there, or to be gone: a fork of the warm process, a fraction of a second."""


@dataclass(kw_only=True)
class _Life:
    """What is known of one server; ``status`` is how it ended, as a return code."""

    started: Event = field(default_factory=Event)
    gone: Event = field(default_factory=Event)
    problem: str = ""
    layers: tuple[str, ...] = ()
    status: int | None = None


class Servers:
    """Keeps the warm process; ``root`` is a data root without ground truth.

    Everything happens in ``folder``, which the warm process removes when it ends.
    """

    def __init__(self, conditions: Conditions, *, root: Path, folder: Path):
        self._folder = folder
        self._engine = conditions.engine.folder
        self._memory = conditions.memory
        self._numbers = itertools.count(1)
        self._lives: dict[int, _Life] = {}
        self._answers: dict[int, queue.SimpleQueue[Record | None]] = {}
        self._ready = Event()
        self.ended = Event()
        for name in ("sockets", "tasks"):
            (folder / name).mkdir(mode=0o700)
        (folder / "episodes").mkdir()
        (folder / "episodes").chmod(0o711)
        self._partner = EngineProcess(
            conditions.engine.command("serve", str(root), str(folder), conditions.task),
            environment=conditions.engine.environment(root, folder),
            log=folder / "serve.log",
            hear=self._hear,
        )

    def wait(self) -> None:
        """Wait until servers can be started; raises ``ConfigError`` where the engine does not come up."""
        if not self._ready.wait(WARM_UP_S) or self.ended.is_set():
            raise ConfigError(f"AppWorld's engine does not start: {self._partner.last_words() or 'it says nothing'}")

    def start(self, task: str) -> Server:
        """Start a server for one episode of a task; raises ``RolloutFault`` where that fails."""
        number = next(self._numbers)
        (self._folder / "tasks" / str(number)).write_text(task)
        life = self._lives[number] = _Life()
        # Where servers share a user, what keeps them from each other's sockets is that names cannot be guessed.
        name = secrets.token_hex(16)
        # A user of its own could not read an engine in a private folder, such as a checkout in root's home.
        uid = own_user(number) if is_open_to_others(self._engine) else None
        self._partner.tell({"start": number, "socket": name, "uid": uid, "memory": self._memory})
        if self.ended.is_set() or not life.started.wait(SERVER_S):
            raise broken("server", "no environment server was started")
        server = Server(
            address=self._folder / "sockets" / name,
            folder=self._folder / "episodes" / str(number),
            layers=life.layers,
            life=life,
            letting_go=lambda: self._partner.tell({"end": number}),
        )
        if life.problem:
            server.close()
            raise broken("server", f"an environment server did not start: {life.problem}")
        return server

    def score(self, order: Path, *, seconds: float) -> Record | None:
        """Have outputs evaluated as a file says (see ``score``) and return the answer; ``None``: none came in time."""
        number = next(self._numbers)
        answer = self._answers[number] = queue.SimpleQueue()
        self._partner.tell({"score": number, "order": str(order)})
        try:
            return None if self.ended.is_set() else answer.get(timeout=seconds)
        except queue.Empty:
            self._partner.tell({"end": number})
            return None
        finally:
            self._answers.pop(number, None)

    def close(self) -> None:
        """End all servers and the warm process."""
        self._partner.close()

    def _hear(self, record: Record | None) -> None:
        if record is None:
            self._ready.set()
            self.ended.set()
            for life in list(self._lives.values()):
                life.problem = life.problem or "the engine's warm process ended"
                life.started.set()
                life.gone.set()
            for answer in list(self._answers.values()):
                answer.put(None)
        elif "ready" in record:
            self._ready.set()
        elif "scored" in record:
            if waiting := self._answers.get(record["scored"]):
                waiting.put(record["answer"])
        else:
            self._note(record)

    def _note(self, record: Record) -> None:
        life = self._lives[record["id"]]
        if "status" in record:
            life.status = record["status"]
            life.gone.set()
            del self._lives[record["id"]]
        life.problem = record.get("error", life.problem)
        life.layers = tuple(record.get("layers", life.layers))
        life.started.set()


@dataclass(frozen=True, kw_only=True)
class Server:
    """One episode's server. Its process writes to ``folder`` only; ``layers`` names what confines it."""

    address: Path
    folder: Path
    layers: tuple[str, ...]
    life: _Life
    letting_go: Callable[[], None]

    def end(self) -> None:
        """Kill the server and all it started, and wait until they are gone; safe to call more than once."""
        self.letting_go()
        if not self.life.gone.wait(SERVER_S):
            raise broken("server", "an environment server cannot be ended")

    def was_killed(self, seconds: float) -> bool:
        """Return whether something outside has ended the server, waiting a while for its end.

        Agent code cannot send SIGKILL, not even to its own process. A server that lives on has been broken by it.
        """
        return self.life.gone.wait(seconds) and self.life.status in (None, -signal.SIGKILL)

    def close(self) -> None:
        """End the server and remove what it wrote."""
        self.end()
        clear(self.folder)


def broken(kind: str, message: str) -> RolloutFault:
    """Return the fault of an environment that failed without the agent's doing."""
    return RolloutFault(Fault(owner="task", kind=kind, message=message))
