"""What the logs of servers say: what a starting server is doing, and why it failed, with the fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_TAIL_LINES = 25
_TAIL_BYTES = 64 * 1024
_PHASE_LINES = 400
Wordings = Sequence[tuple[str, str]]
"""Patterns of a log, each with what it means to a user."""

_UNKNOWN_OPTION = (
    r"unrecognized arguments|error: argument|invalid choice|error: ambiguous option|error: invalid argument",
    "this version of the server does not know an option: see backbone.server.flags",
)
_PORT_TAKEN = (
    r"address already in use|couldn't bind HTTP server socket",
    "the port is taken: choose another backbone.server.port, or null for a free one",
)

VLLM_PHASES = (
    (r"Resolved architecture|Initializing a V1 LLM engine", "reading the model's configuration"),
    (r"Starting to load model|Loading safetensors|Downloading", "loading the weights"),
    (
        r"Loading weights took|Warming up model|Compiling a graph|torch.compile takes|[Mm]emory profiling",
        "compiling and measuring memory",
    ),
    (r"KV cache size|Available KV cache memory|Maximum concurrency", "laying out the cache"),
    (r"Started server process|Application startup complete", "opening its port"),
)
VLLM_FIXES = (
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
    _PORT_TAKEN,
    (
        r"unrecognized arguments:.{0,200}--structured-outputs-config",
        "vLLM before 0.11 names this option otherwise: update it, or set "
        "backbone.server.flags=[--guided-decoding-backend,xgrammar,--guided-decoding-disable-any-whitespace]",
    ),
    _UNKNOWN_OPTION,
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

LLAMA_CPP_PHASES = (
    (r"[Dd]ownloading", "downloading the model"),
    (r"load_model: loading model", "loading the weights"),
    (r"n_slots = \d+", "opening its port"),
)
LLAMA_CPP_FIXES = (
    (
        r"invalid magic characters|failed to read (magic|header|tensor|key|string)|gguf_init_from_\w+: failed to read"
        r"|tensor data is not within the file bounds",
        "backbone.model is not a whole GGUF file: fetch it again, or convert the model",
    ),
    (
        r"unknown model architecture|unknown pre-tokenizer type",
        "this llama.cpp is older than the model: update it, or name a newer one by backbone.server.executable",
    ),
    (
        r"failed to allocate|out of memory|failed to initialize the context|failed to create context",
        "there is not enough memory: lower backbone.server.slots or backbone.server.max_model_len, or choose a smaller "
        "or more strongly quantised model",
    ),
    (
        r"HTTPS is not supported|failed to resolve commit|[Ff]ailed to download|could not fetch|unsupported option: -hf"
        r"|exactly one out metadata, path_model",
        "this server could not fetch the model from the hub: check its name (OWNER/NAME-GGUF:QUANTISATION) and the "
        "network, or download the GGUF file and set backbone.model=FILE.gguf",
    ),
    (r"failed to open GGUF file", "the model is not found: check backbone.model"),
    _PORT_TAKEN,
    _UNKNOWN_OPTION,
)


def likely_fix(log: str, fixes: Wordings) -> str:
    """Return the most likely cause and its fix, "" if the log shows no known error."""
    return next((advice for pattern, advice in fixes if re.search(pattern, log, re.IGNORECASE)), "")


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"(the log cannot be read: {error})"
    return "\n".join(text.splitlines()[-lines:])


def phase(log: Path, phases: Wordings) -> str:
    """Return what a starting server is doing, by the latest line of its log that tells."""
    text = tail(log, lines=_PHASE_LINES)
    latest = [(text.rfind(match), meaning) for pattern, meaning in phases for match in re.findall(pattern, text)[-1:]]
    return max(latest, default=(0, "starting its program"))[1]
