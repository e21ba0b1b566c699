"""A server that a run launches under a supervisor process (see ``supervisor``): start, wait until it is ready, stop.

Where a start fails, the cause and its fix are looked for in the server's log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.settings import Address
from ace_bench.backbones.vllm import supervisor
from ace_bench.backbones.vllm.command import LOCAL, Launch, free_port, in_use
from ace_bench.backbones.vllm.logs import likely_fix, phase, tail
from ace_bench.core.errors import BackboneUnavailable, ConfigError, SettingError

_SLACK_S, _TIMEOUT_S, _POLL_S = 10.0, 5.0, 0.2
Say = Callable[[str], None]


class Server:
    """One process group under a supervisor, which ends it when this process ends, also when it is killed.

    ``root`` is the server's URL without ``/v1``; ``log`` is the file its output goes to. What the start does is said
    when it changes, and every ``report_every`` seconds. It is thread-safe once it has started.
    """

    def __init__(self, serve: Launch, *, model: str, port: int, report_every: float = 30.0):
        self.root = f"http://{LOCAL}:{port}"
        plain = re.sub(r"[^\w.-]+", "-", serve.served_name or model).strip("-.")
        self.log = Path(serve.log_dir) / f"{plain}-{time.strftime('%Y%m%d-%H%M%S')}-{port}.log"
        self._serve = serve
        self._model = model
        self._port = port
        self._report_every = report_every
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._status: str | None = None

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended; processes that it left may still be ending after it."""
        return self._process is not None and self._read_status() is None and self._process.poll() is None

    def start(self, say: Say) -> None:
        """Start the server and wait until it accepts requests; stop it on a failure or an interruption.

        Raises ``ConfigError`` or ``BackboneUnavailable`` with the fix and the tail of the log.
        """
        command = self._serve.command(self._model, self._port)
        if in_use(self._port):
            raise SettingError(
                f"server.port={self._port} is in use: choose another, null for a free one, or set url if it is the "
                "server you want"
            )
        say(f"{self._serve.product}: starting {self._model} on port {self._port}; log: {self.log}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", supervisor.__file__, str(self._serve.stop_timeout), *command],
                stdin=subprocess.PIPE,  # the supervisor ends the server when it is closed
                stdout=subprocess.PIPE,  # tells the status with which the server ended
                stderr=output,
                env=self._serve.environment(),
                start_new_session=True,  # the harness handles Ctrl-C
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        try:
            self._wait(say)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and all it started, and wait for it; safe at any time and more than once."""
        if (process := self._process) is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(2 * self._serve.stop_timeout + _SLACK_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._read_status()  # the last chance
        with self._lock:
            process.stdout.close()

    def ends_within(self, seconds: float) -> bool:
        """Whether the server has ended, or does so within some seconds."""
        deadline = time.monotonic() + seconds
        while self.running and time.monotonic() < deadline:
            time.sleep(_POLL_S / 4)
        return not self.running

    def ended_message(self) -> str:
        """Return a message that the server has ended, with the end of its log."""
        return f"{self._serve.product} has ended{self._in_words()}; {self._end_of_log()}"

    def _wait(self, say: Say) -> None:
        name, timeout = self._serve.product, self._serve.start_timeout
        started = reported = time.monotonic()
        last_phase = ""
        with closing(Endpoint(Address(base_url=self.root, model=None, timeout=_TIMEOUT_S))) as pages:
            while pages.page("/health") is None:
                now = time.monotonic()
                if not self.running:
                    raise self._failure(f"{name} ended after {now - started:.0f} s{self._in_words()}")
                if now - started > timeout:
                    raise self._failure(f"{name} was not ready within server.start_timeout={timeout:g} s")
                if (
                    latest := phase(self.log, self._serve.phases)
                ) != last_phase or now - reported >= self._report_every:
                    reported, last_phase = now, latest
                    say(f"{name}: {now - started:.0f} s: {last_phase}")
                time.sleep(_POLL_S)
        say(f"{name}: ready after {time.monotonic() - started:.0f} s")

    def _failure(self, problem: str) -> ConfigError | BackboneUnavailable:
        advice = likely_fix(self.log.read_text(errors="replace"), self._serve.fixes)
        if advice:
            return ConfigError(f"{problem}: {advice}; {self._end_of_log()}")
        return BackboneUnavailable(f"{problem}; {self._end_of_log()}")

    def _read_status(self) -> str | None:
        """Return the server's exit status, ``None`` while it runs and after ``stop`` ended it."""
        with self._lock:
            pipe = None if self._process is None else self._process.stdout
            if self._status is None and pipe is not None and not pipe.closed:
                self._status = (pipe.read() or b"").decode().strip() or None
            return self._status

    def _in_words(self) -> str:
        return "" if (status := self._read_status()) is None else f" with status {status}"

    def _end_of_log(self) -> str:
        return f"the end of {self.log}:\n{tail(self.log)}"


class ServerPool:
    """The servers that the runs of a process have started. Runs that start the same model in the same way share one.

    With ``keeps_idle`` a server that no run uses any more waits for the next run. It ends when another server is to
    start, because that may need its memory, or with ``close``. Thread-safe.
    """

    def __init__(self, *, keeps_idle: bool = False):
        self._keeps_idle = keeps_idle
        self._lock = threading.Lock()
        self._users: dict[Server, int] = {}
        self._started: dict[object, Server] = {}

    def lease(self, serve: Launch, model: str, say: Say) -> Server:
        """Return a running server, started if there is none; raises as ``Server.start`` does."""
        key = (serve.command(model, serve.port or 0), tuple(serve.env.items()))
        with self._lock:  # a run that wants a server which another run starts waits for it
            server = self._started.get(key)
            if server is None or not server.running:
                self._stop_idle()
                server = Server(serve, model=model, port=serve.port or free_port())
                server.start(say)
                self._started[key] = server
            self._users[server] = self._users.get(server, 0) + 1
            return server

    def release(self, server: Server) -> None:
        """Take note that a run needs its server no longer."""
        with self._lock:
            self._users[server] -= 1
            if not self._keeps_idle:
                self._stop_idle()

    def close(self) -> None:
        """End all servers."""
        with self._lock:
            self._users = dict.fromkeys(self._users, 0)
            self._stop_idle()

    def _stop_idle(self) -> None:
        for server in [server for server, users in self._users.items() if not users]:
            server.stop()
            del self._users[server]
            self._started = {key: started for key, started in self._started.items() if started is not server}
