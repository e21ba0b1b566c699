"""vLLM's ``run-batch``: a process on this machine that loads the model, answers a file of calls and ends.

It outlives a killed run, which finds it again: while it runs, it holds the lock of a file that has its process id.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from ace_batch.backbone import BatchBackbone
from ace_batch.settings import BatchSettings, Status
from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.requests import candidates
from ace_bench.backbones.vllm.command import LOCAL, Launch, Serve
from ace_bench.core.errors import BackboneUnavailable, SettingError
from ace_bench.core.settings import Text
from ace_bench.core.types import NO_USAGE, Probe, Record

_LOCK, _OUTPUT, _LOG = ".process", ".output.jsonl", ".log"
_LOG_LINES, _LOOK_S = 3, 0.05
_ENDING_S = 3.0
"""Seconds that a process has to end by itself."""


class RunBatchFiles:
    """Runs a process for each file, beside which its output and log are. A batch's id is the path of its lock."""

    def __init__(self, server: Serve, model: str):
        self._server = server
        self._model = model
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: set[str] = set()

    def check(self) -> None:
        """See ``Provider``."""
        self._server.command(self._model, 0)

    def send(self, file: Path, token: str) -> str:
        """See ``Provider``."""
        lock, output, log = (_beside(file, suffix) for suffix in (_LOCK, _OUTPUT, _LOG))
        program, _, model, *options = self._server.command(self._model, 0)
        command = (program, "run-batch", "-i", str(file), "-o", str(output), "--model", model, *options)
        with open(lock, "w+", encoding="ascii") as held, open(log, "ab") as written:
            fcntl.flock(held, fcntl.LOCK_EX)
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                env=self._server.environment(),
                pass_fds=(held.fileno(),),
                start_new_session=True,
            )
            held.write(str(child.pid))
        self._children[str(lock)] = child
        self._begun.add(str(lock))
        return str(lock)

    def find(self, file: Path, token: str) -> str | None:
        """See ``Provider``."""
        lock = _beside(file, _LOCK)
        return str(lock) if lock.exists() else None

    def status(self, batch: str) -> Status:
        """See ``Provider``; a process that ended without its output, and that another run started, was killed."""
        self._begun.add(batch)
        if self._is_running(batch):
            return Status(state="running", word="running")
        self._begun.discard(batch)
        child = self._children.get(batch)
        if child is not None and child.returncode:
            log = _beside(Path(batch), _LOG)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
            why = f"vllm run-batch ended with status {child.returncode}; {log} ends: {' / '.join(lines)}"
            return Status(state="failed", word="failed", why=why)
        return Status(state="ended", word="completed" if _beside(Path(batch), _OUTPUT).exists() else "killed")

    def replies(self, batch: str) -> bytes:
        """See ``Provider``."""
        output = _beside(Path(batch), _OUTPUT)
        return output.read_bytes() if output.exists() else b""

    def close(self) -> None:
        """End the processes, which nobody waits for any more."""
        for batch in filter(self._is_running, self._begun):
            with suppress(OSError, ValueError):  # it has ended, or did not begin
                group, ends = int(Path(batch).read_text(encoding="ascii")), time.monotonic() + _ENDING_S
                os.killpg(group, signal.SIGTERM)
                while self._is_running(batch):
                    time.sleep(_LOOK_S)
                    if time.monotonic() > ends:
                        os.killpg(group, signal.SIGKILL)
        self._begun.clear()

    def _is_running(self, batch: str) -> bool:
        child = self._children.get(batch)
        return _is_held(batch) if child is None else child.poll() is None


class VllmBatch(BatchBackbone):
    """Loads ``model`` (a name on the model hub, or a folder) for each file; there is no server, and nothing to pay.

    The settings are the same as for a server that vLLM would start, so a run can go on with either.
    """

    def __init__(
        self,
        *,
        url: Text | None,
        launch: bool,
        model: Text | None,
        server: Launch,
        batch: BatchSettings,
        **client: Annotated[Any, OpenAICompatible],
    ):
        if url is not None or not launch or not isinstance(server, Serve):
            raise SettingError("url, launch and server must be as in backbone=vllm: batch=vllm starts vLLM itself")
        if not model:
            raise SettingError("model is not set: name a model on the model hub, or a folder")
        if batch.adapt == "online":
            raise SettingError("batch.adapt=online needs a server, and batch=vllm has none: choose refuse or batch")
        self._loads = {"loads": model, **server.identity}
        client = {**client, "base_url": f"http://{LOCAL}", "model": server.served_name or model}
        if client.get("context_length") is None:
            client["context_length"] = server.max_model_len
        super().__init__(RunBatchFiles(server, model), batch, **client)

    @property
    def identity(self) -> Record:
        """The client's, with the model that is loaded."""
        return {**super().identity, **self._loads}

    @property
    def probe_key(self) -> str | None:
        """``None``: there is no endpoint."""
        return None

    def check(self) -> None:
        """Raise ``SettingError`` if vLLM is missing."""
        self._provider.check()

    def probe(self) -> Probe:
        """Return what is known without a call; JSON replies are asked for as vLLM's server would be."""
        self.check()
        if self._dialect is None:
            self._dialect = candidates(self._settings.structured, bound=self._settings.bound_replies is True)[0]
        facts = {"model": self.name, "structured replies": self._dialect.words(), "batches": self._describe()}
        return Probe(facts=facts, usage=NO_USAGE)


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name.partition(".")[0] + suffix)


def _is_held(lock: str) -> bool:
    """Whether a process holds a lock."""
    try:
        with open(lock, encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError as error:
        raise BackboneUnavailable(
            f"{lock} is missing: remove the batch's other files, too, to send its calls again"
        ) from error
    return False
