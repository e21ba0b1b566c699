"""AppWorld's engine: where it is installed, how to run a module in its interpreter, and its processes.

The engine pins libraries in versions that conflict with this package's, so it has a virtual environment of its own,
made by ``ace-bench appworld``. Nothing of it is imported here.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import import_folder
from ace_bench.core.types import Record

VERSION = "0.1.3.post1"
"""The engine's release that this package is written for; it uses data version 0.1.0."""

HERE = Path(__file__).resolve().parent
FOLDER_VARIABLE = "ACE_BENCH_APPWORLD"
"""Environment variable that names the engine's folder; without it, ``.appworld`` in the current folder is used."""
FACTS = "engine.json"
"""The set-up writes this file last, so an engine folder that has it is complete."""


class Facts(msgspec.Struct, frozen=True):
    """The content of ``engine.json``; ``apps`` maps the names of the apps, in order, to their descriptions."""

    version: str
    apps: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An installed engine."""

    folder: Path
    facts: Facts

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command that runs a module of ``engine_side``."""
        return [str(python_of(self.folder)), "-P", "-m", f"engine_side.{module}", *arguments]

    def environment(self, root: Path, scratch: Path) -> dict[str, str]:
        """Return the environment variables of an engine process; the user's own, which may hold keys, are left out.

        ``root`` is its data root, ``scratch`` its home and temporary folder.
        """
        kept = {name: value for name in ("LD_LIBRARY_PATH", "PATH") if (value := os.environ.get(name))}
        return kept | {
            "APPWORLD_CACHE": str(self.folder / "cache"),
            "APPWORLD_ROOT": str(root),
            "HOME": str(scratch),
            "IPYTHONDIR": str(scratch),
            "LANG": "C.UTF-8",
            "ACE_BENCH_PACKAGES": str(import_folder()),
            "PYTHONDONTWRITEBYTECODE": "1",  # evaluations run code from the shared root
            "PYTHONHASHSEED": "0",  # a replayed step prints sets in the same order
            "PYTHONPATH": str(HERE),
            "TMPDIR": str(scratch),
        }


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """``task`` is the id of any task, to load the engine with; ``memory`` limits each server, in bytes."""

    engine: Engine
    task: str
    memory: int


def python_of(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / "bin" / "python"


def engine_folder() -> Path:
    """Return the folder that holds the engine, or will hold it once it is set up."""
    return Path(os.environ.get(FOLDER_VARIABLE) or ".appworld").expanduser().absolute()


def find_engine() -> Engine:
    """Return the installed engine; raises ``ConfigError`` with the fix where it is absent or of another release."""
    folder = engine_folder()
    try:
        facts: Facts = decoder_of(Facts).decode((folder / FACTS).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"AppWorld's engine is not set up in {folder}: run `{command_line('appworld')}`") from error
    if facts.version != VERSION:
        raise ConfigError(
            f"AppWorld's engine in {folder} is release {facts.version}, {VERSION} is needed: "
            f"run `{command_line('appworld')}`"
        )
    return Engine(folder=folder, facts=facts)


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
        except OSError:  # its folder has been removed
            return ""

    def _read_events(self, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                self._on_event(msgspec.json.decode(line))
        self._on_event(None)
