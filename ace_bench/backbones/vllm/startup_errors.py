"""Finds the cause and the fix of a failed start in a server's log."""

from __future__ import annotations

import re
from pathlib import Path

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
    found = [(text.rfind(match), words) for pattern, words in _PHASES for match in re.findall(pattern, text)[-1:]]
    return max(found, default=(0, "importing its code"))[1]
