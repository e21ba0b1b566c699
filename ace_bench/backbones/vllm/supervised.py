"""A command that runs under a supervisor process (see ``supervisor``)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ace_bench.backbones.vllm import supervisor

_SLACK_S = 10.0


class SupervisedProcess:
    """Runs from construction to ``end``; thread-safe. ``grace`` is in seconds; output is appended to ``log``."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path, grace: float):
        self._grace = grace
        self._lock = threading.Lock()
        self._status: str | None = None
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(Path(supervisor.__file__)), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=env,
                start_new_session=True,  # the harness handles Ctrl-C
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._lifeline, self._status_pipe = self._process.stdin, self._process.stdout
        os.set_blocking(self._status_pipe.fileno(), False)

    @property
    def running(self) -> bool:
        """Whether the command itself is running; processes that it left may still be ending after it."""
        return self.status is None and self._process.poll() is None

    @property
    def status(self) -> str | None:
        """The command's exit status, ``None`` while it runs and after ``end`` ended it."""
        with self._lock:
            if self._status is None and not self._status_pipe.closed:
                self._status = (self._status_pipe.read() or b"").decode().strip() or None
            return self._status

    def end(self) -> None:
        """End the command and everything it started, and wait until they have exited; safe to call more than once."""
        self._lifeline.close()
        try:
            self._process.wait(2 * self._grace + _SLACK_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _ = self.status  # the last chance to read it
        with self._lock:
            self._status_pipe.close()
