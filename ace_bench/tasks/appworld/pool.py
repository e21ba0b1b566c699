"""The processes behind a task's sessions, started when the first is wanted and put away after the last."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ace_bench.tasks.appworld.engine import Conditions
from ace_bench.tasks.appworld.outputs import collect
from ace_bench.tasks.appworld.roots import check_path, close_to_others, show
from ace_bench.tasks.appworld.scoring import Scorer, Verdict
from ace_bench.tasks.appworld.servers import Server, Servers

_MISSING = {
    "user": "they run as your own user (only root can give them users of their own)",
    "files": "the kernel has no Landlock, so they may read what their user may",
    "network": "they may open network connections",
}

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class _Running:
    folder: Path
    servers: Servers
    scorer: Scorer
    close: Callable[[], None]


class Pool:
    """Starts servers and scores what they leave; safe between threads.

    ``root`` is the full data root.
    """

    def __init__(self, conditions: Conditions, *, root: Path):
        self._conditions = conditions
        self._root = root
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._numbers = itertools.count(1)

    def start(self, say: Say) -> None:
        """Get ready and say what, if anything, does not keep agent code in; raises ``ConfigError``."""
        say("AppWorld: warming up the engine")
        server = self.server()
        server.close()
        missing = [reason for layer, reason in _MISSING.items() if layer not in server.layers]
        if missing:
            say(f"AppWorld: servers are not fully confined: {'; '.join(missing)}. See docs/tasks/appworld.md")

    def server(self) -> Server:
        """Start a server for one episode; raises ``RolloutFault`` where that fails, ``ConfigError`` where all do."""
        return self._up().servers.start()

    def score(self, server: Server, task: str) -> Verdict:
        """Evaluate what a server that has ended saved; raises ``Unusable`` or ``RolloutFault``."""
        outputs = self._up().folder / "scores" / str(next(self._numbers))
        try:
            collect(server.folder, task, outputs / "tasks" / task)
            return self._up().scorer.score(task, outputs)
        finally:
            shutil.rmtree(outputs, ignore_errors=True)

    def close(self) -> None:
        """End all processes and remove their folder; safe at any time and more than once."""
        with self._lock:
            if self._running is not None:
                self._running.close()
                self._running = None
                atexit.unregister(self.close)

    def _up(self) -> _Running:
        """Return what runs, after a start where nothing does or the warm process has died."""
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
        folder = Path(tempfile.mkdtemp(prefix="ace-bench-appworld-")).resolve()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            check_path(folder)
            folder.chmod(0o711)
            (folder / "scores").mkdir(mode=0o700)
            show(self._root, folder / "world")
            servers = Servers(self._conditions, root=folder / "world", folder=folder)
            stack.callback(servers.close)
            scorer = Scorer(servers, root=self._root, memory=self._conditions.memory)
            servers.wait()
            return _Running(folder=folder, servers=servers, scorer=scorer, close=stack.pop_all().close)
