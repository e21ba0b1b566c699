"""The engine's processes behind a task's sessions: started for the first session, ended by ``close``."""

from __future__ import annotations

import atexit
import itertools
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.confine import describe_layers, missing_layers
from ace_bench.core.errors import ConfigError
from ace_bench.core.scratch import clear, clear_abandoned, scratch_folder
from ace_bench.tasks.appworld.engine import EngineSettings
from ace_bench.tasks.appworld.roots import check_path, close_to_others, copy_visible
from ace_bench.tasks.appworld.scoring import Scorer, Verdict, collect
from ace_bench.tasks.appworld.servers import Server, Servers

_SCRATCH = "appworld"

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class _Running:
    folder: Path
    servers: Servers
    scorer: Scorer
    close: Callable[[], None]


class Pool:
    """Starts environment servers and scores their outputs; safe between threads.

    ``root`` is the full data root, ``confined`` whether servers must be confined.
    """

    def __init__(self, settings: EngineSettings, *, root: Path, confined: bool):
        self.layers: tuple[str, ...] | None = None
        """What confines the server that was started last; ``None`` before the first."""
        self._confined = confined
        self._settings = settings
        self._root = root
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._numbers = itertools.count(1)

    def describe(self, say: Say) -> None:
        """Report what confines the server that was started last."""
        layers = self.layers or ()
        say(f"AppWorld: agent code is confined by: {describe_layers(layers)}. See docs/tasks/appworld.md")
        if missing := missing_layers(layers):
            say(f"AppWorld: agent code can do what you can do (task.confinement=none): {missing}")

    def server(self, task: str, *, timeout: int) -> Server:
        """Start a server for one episode of a task; ``timeout`` is the engine's limit for a piece of code, in seconds.

        Raises ``RolloutFault`` where that fails, ``ConfigError`` where all do, or where this machine cannot confine it.
        """
        server = self._started().servers.start(task, timeout=timeout)
        if self._confined and (missing := missing_layers(server.layers)):
            server.close()
            raise ConfigError(
                f"this machine cannot confine what agents run: {missing}; use another machine (docs/tasks/appworld.md "
                "has a container), or pass task.confinement=none to let their code do what you can do"
            )
        self.layers = server.layers
        return server

    def score(self, server: Server, task: str) -> Verdict:
        """Evaluate the outputs of a server that has ended; raises ``Unusable`` or ``RolloutFault``."""
        outputs = self._started().folder / "scores" / str(next(self._numbers))
        try:
            collect(server.folder, task, outputs / "tasks" / task)
            return self._started().scorer.score(task, outputs)
        finally:
            clear(outputs)

    def close(self) -> None:
        """End all processes and remove their folder; safe at any time and more than once."""
        with self._lock:
            if self._running is not None:
                self._running.close()
                self._running = None
                atexit.unregister(self.close)

    def _started(self) -> _Running:
        """Return the running processes; start them where there are none or the fork server has died."""
        with self._lock:
            if self._running is not None and self._running.servers.ended.is_set():
                self._running.close()
                self._running = None
            if self._running is None:
                self._running = self._start()
                atexit.register(self.close)
            return self._running

    def _start(self) -> _Running:
        close_to_others(self._root)
        clear_abandoned(_SCRATCH)
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder(_SCRATCH))
            check_path(folder)
            folder.chmod(0o711)
            (folder / "scores").mkdir(mode=0o700)
            copy_visible(self._root, folder / "world")
            servers = Servers(self._settings, root=folder / "world", folder=folder)
            stack.callback(servers.close)
            scorer = Scorer(servers, root=self._root, memory=self._settings.memory)
            servers.wait()
            return _Running(folder=folder, servers=servers, scorer=scorer, close=stack.pop_all().close)
