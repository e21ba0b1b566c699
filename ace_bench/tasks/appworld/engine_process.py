"""A process in the engine's interpreter with which this one exchanges JSON lines."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from ace_bench.core.types import Record

_PATIENCE_S = 20.0
_TAIL = 2000


class EngineProcess:
    """Runs from construction until ``close`` or its own end; it ends by itself when this process is gone.

    ``hear`` is told every line in a thread of its own, and ``None`` once no more will come. Standard error goes to
    the file ``log``.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: dict[str, str],
        log: Path,
        hear: Callable[[Record | None], None],
    ):
        self._hear = hear
        self._log = log
        self._telling = threading.Lock()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=log.parent,
                start_new_session=True,  # a Ctrl-C in the terminal is the harness's to handle
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._reader = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def tell(self, record: Record) -> None:
        """Send one line; silently dropped where the process is gone, of which ``hear`` has been or will be told."""
        with self._telling:
            try:
                self._stdin.write(json.dumps(record).encode() + b"\n")
                self._stdin.flush()
            except (OSError, ValueError):
                return

    def close(self) -> None:
        """Let the process end, and wait for that; safe to call more than once."""
        with self._telling, contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(_PATIENCE_S)

    def last_words(self) -> str:
        """Return the end of what it wrote to standard error."""
        try:
            return self._log.read_text(errors="replace")[-_TAIL:].strip()
        except OSError:
            return ""

    def _listen(self, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                self._hear(msgspec.json.decode(line))
        self._hear(None)
