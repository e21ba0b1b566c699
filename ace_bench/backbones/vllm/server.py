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
from ace_bench.backbones.vllm.command import LOCAL, Launch, in_use
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
            while pages.page(self._serve.ready_path) is None:
                now = time.monotonic()
                if not self.running:
                    raise self._failure(f"{name} ended after {now - started:.0f} s{self._in_words()}")
                if now - started > timeout:
                    raise self._failure(f"{name} was not ready within server.start_timeout={timeout:g} s")
                if (latest := phase(self.log)) != last_phase or now - reported >= self._report_every:
                    reported, last_phase = now, latest
                    say(f"{name}: {now - started:.0f} s: {last_phase}")
                time.sleep(_POLL_S)
        say(f"{name}: ready after {time.monotonic() - started:.0f} s")

    def _failure(self, problem: str) -> ConfigError | BackboneUnavailable:
        advice = likely_fix(self.log.read_text(errors="replace"))
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


_TAIL_LINES = 25
_TAIL_BYTES = 64 * 1024
_PHASE_LINES = 400
_PHASES = (
    (r"Resolved architecture|Initializing a V1 LLM engine", "reading the model's configuration"),
    (r"Starting to load model|Loading safetensors|Downloading", "loading the weights"),
    (
        r"Loading weights took|Warming up model|Compiling a graph|torch.compile takes|[Mm]emory profiling",
        "compiling and measuring memory",
    ),
    (r"KV cache size|Available KV cache memory|Maximum concurrency", "laying out the cache"),
    (r"Started server process|Application startup complete", "opening its port"),
)
_FIXES = (
    (
        r"[Ff]ree memory on device cpu|less than desired CPU memory|CPU memory utilization",
        "vLLM wants a larger share of this machine's memory than is free: lower "
        "backbone.server.gpu_memory_utilization (it counts on CPUs, too), and set the room of the cache in GB by "
        "+backbone.server.env.VLLM_CPU_KVCACHE_SPACE",
    ),
    (
        r"out of memory|OutOfMemoryError|No available memory for the cache blocks|Cannot allocate memory"
        r"|larger than the available KV cache memory|number of tokens that can be stored in KV cache"
        r"|[Ff]ree memory on device.{0,200}less than|[Nn]ot enough memory|less than desired (GPU|CPU) memory",
        "there is not enough memory: lower backbone.server.max_model_len, spread the model over more GPUs "
        "(server.tensor_parallel), choose a smaller or quantised model, or change server.gpu_memory_utilization",
    ),
    (
        r"gated repo|GatedRepoError|401 Client Error|403 Client Error",
        "the download of the model is not permitted: accept its licence on its page and export HF_TOKEN",
    ),
    (
        r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError|Repository Not Found"
        r"|Invalid repository ID or local directory|LocalEntryNotFoundError|couldn't connect to"
        r"|Model path does not exist|offline mode is enabled|HFValidationError|Repo id must",
        "the model is not found: check backbone.model (a name on the model hub, or a folder) and the network",
    ),
    (r"address already in use", "the port is taken: choose another backbone.server.port, or null for a free one"),
    (
        r"unrecognized arguments:.{0,200}--structured-outputs-config",
        "vLLM before 0.11 names this option otherwise: update it, or set "
        "backbone.server.flags=[--guided-decoding-backend,xgrammar,--guided-decoding-disable-any-whitespace]",
    ),
    (
        r"unrecognized arguments|error: argument|invalid choice|error: ambiguous option",
        "this version of the server does not know an option: see backbone.server.flags",
    ),
    (
        r"Failed to infer device type|No CUDA GPUs are available|Found no NVIDIA driver",
        "this build of vLLM finds no device to run on: GPU builds need a GPU; for CPUs run `make vllm-cpu`",
    ),
    (
        r"World size \(\d+\) is larger|number of (available )?GPUs|placement group.{0,80}(pending|cannot|no available)"
        r"|tensor parallel size.{0,60}(divisible|larger)|must be divisible by tensor parallel",
        "the parallel sizes do not fit the GPUs or the model: see server.tensor_parallel and server.pipeline_parallel",
    ),
)


def likely_fix(log: str) -> str:
    """Return the most likely cause and its fix, "" if the log shows no known error."""
    return next((advice for pattern, advice in _FIXES if re.search(pattern, log, re.IGNORECASE)), "")


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"(the log cannot be read: {error})"
    return "\n".join(text.splitlines()[-lines:])


def phase(log: Path) -> str:
    """Return what a starting server is doing, by the latest line of its log that tells."""
    text = tail(log, lines=_PHASE_LINES)
    phases = [
        (text.rfind(match), description) for pattern, description in _PHASES for match in re.findall(pattern, text)[-1:]
    ]
    return max(phases, default=(0, "importing its code"))[1]
