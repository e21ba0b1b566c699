"""A child process in the engine's interpreter; both sides send JSON lines, this one with descriptors."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from ace_bench.core.types import Record

_TIMEOUT_S = 20.0
_STDERR_CHARS = 2000


class EngineProcess:
    """Runs from construction until ``close`` or until it exits; it exits by itself when this process dies.

    ``on_event`` is called in a thread of its own with every event, and with ``None`` after the last. Standard error
    goes to the file ``log``.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: dict[str, str],
        log: Path,
        on_event: Callable[[Record | None], None],
    ):
        self._on_event = on_event
        self._log = log
        self._write_lock = threading.Lock()
        self._requests, requests = socket.socketpair()
        with requests, log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=requests.fileno(),
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=log.parent,
                start_new_session=True,  # a Ctrl-C in the terminal is handled by the harness alone
            )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def send(self, request: Record, *descriptors: int) -> None:
        """Send a request and copies of descriptors.

        If the process has ended, the request is dropped: ``on_event`` gets ``None`` then.
        """
        with self._write_lock, contextlib.suppress(OSError):
            socket.send_fds(self._requests, [json.dumps(request).encode() + b"\n"], descriptors)

    def close(self) -> None:
        """Close the connection to it and wait for its end; kill it after 20 seconds. Safe to call more than once."""
        with self._write_lock:
            self._requests.close()
        try:
            self._process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(_TIMEOUT_S)

    def stderr(self) -> str:
        """Return the last 2,000 characters that it wrote to standard error."""
        try:
            return self._log.read_text(errors="replace")[-_STDERR_CHARS:].strip()
        except OSError:
            return ""

    def _read_events(self, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                self._on_event(msgspec.json.decode(line))
        self._on_event(None)
