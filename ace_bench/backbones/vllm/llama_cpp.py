"""The command line of llama.cpp's server, ``llama-server``."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

from ace_bench.backbones.vllm import llama_server
from ace_bench.backbones.vllm.command import LOCAL, Launch
from ace_bench.backbones.vllm.logs import LLAMA_CPP_FIXES, LLAMA_CPP_PHASES
from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Text

_NAME = "llama-server"


@dataclass(frozen=True, kw_only=True)
class ServeLlamaCpp(Launch):
    """``llama-server``, with ``slots`` requests at a time and ``max_model_len`` tokens for each of them.

    The model is a GGUF file or a name on the model hub. With ``executable`` ``None`` the program is the
    ``llama-server`` on the PATH, or else the one of the package xllamacpp, which runs without a compiler.
    """

    product = "llama.cpp"
    how_to_install = (
        "install llama.cpp and give the path of its `llama-server`, or `pip install 'ace-bench[llama-cpp]'` and set "
        "server.executable=null"
    )
    phases, fixes = LLAMA_CPP_PHASES, LLAMA_CPP_FIXES

    executable: Text | None = None
    max_model_len: Count
    slots: Count

    def program(self) -> tuple[str, ...]:
        """See ``Launch``."""
        if self.executable is None and (path := self.find(_NAME)) is not None:
            return (path,)
        if self.executable is None and importlib.util.find_spec("xllamacpp") is not None:
            return (sys.executable, "-I", llama_server.__file__)
        if self.executable is None:
            raise SettingError(f"server.executable=null, and there is no {_NAME} on the PATH: {self.how_to_install}")
        return super().program()

    def options(self, model: str, port: int) -> tuple[str, ...]:
        """See ``Launch``; raises ``SettingError`` if the model's file is not there."""
        chosen = {
            **_source(model),
            "--alias": self.served_name or model,
            "--ctx-size": self.slots * self.max_model_len,  # llama-server divides it among its slots
            "--parallel": self.slots,
            "--host": LOCAL,
            "--port": port,
        }
        return (*(str(part) for option in chosen.items() for part in option), "--metrics")


def _source(model: str) -> dict[str, str]:
    """Return the option that names the model: by its file, or on the model hub."""
    file = Path(model).expanduser()
    if file.is_file():
        return {"--model": str(file)}
    if file.suffix == ".gguf" or file.exists() or model.count("/") != 1:
        raise SettingError(
            f"model={model} is not a file: give the path of a GGUF file, or a name on the model hub such as "
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M"
        )
    return {"-hf": model}
