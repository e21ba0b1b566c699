"""A real vLLM server on this machine's CPUs, with a model of random weights: `make test-vllm`."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.backbones.vllm.server import Server
from tests.launching import ROOT, built, composed

ENVIRONMENT = ROOT / ".vllm" / "bin"
BLOCK = 32
ADD = {
    "type": "object",
    "properties": {
        "type": {"const": "ADD"},
        "section": {"type": "string", "maxLength": 20},
        "content": {"type": "string", "maxLength": 150},
    },
    "required": ["type", "section", "content"],
}
BOUNDS = {"max_string": 150, "max_items": 3, "anything": ADD}
# Random weights like control characters, which the default grammar lets into strings of bounded length.
FLAGS = (
    *("--enforce-eager", "--dtype", "float32", "--block-size", str(BLOCK)),
    *("--structured-outputs-config", '{"backend": "guidance", "disable_any_whitespace": true}'),
)
ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def quiet(line: str) -> None:
    """Take a progress line."""


def hydra(value: object) -> str:
    """Write a value as Hydra's overrides want it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {hydra(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(hydra, value)) + "]"
    return json.dumps(value)


ASKING = (
    "backbone=vllm",
    f"backbone.bound_replies={hydra(BOUNDS)}",
    "backbone.sampling.temperature=1.0",
    "backbone.sampling.seed=null",  # with one seed the model would answer nearly every prompt alike
    "backbone.sampling.max_tokens=1000",
    "task=finer",
    "task.source=sample",
    "embedder=hashing",
    "method.max_reflection_rounds=1",
)


def launching(model: Path) -> tuple[str, ...]:
    """Overrides of a run that launches the server."""
    return (
        *ASKING,
        "backbone.launch=true",
        f"backbone.model={model}",
        f"backbone.server.executable={ENVIRONMENT / 'vllm'}",
        "backbone.server.served_name=tiny",
        "backbone.server.max_model_len=8192",
        f"backbone.server.flags={hydra(FLAGS)}",
        f"+backbone.server.env={hydra(ENV)}",
    )


def run(results: Path, *overrides: str) -> subprocess.Popen[str]:
    """Start run.py in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "run.py", f"results={results}", *overrides],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def calls(results: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in results.rglob("calls.jsonl"))


def family(process: int) -> dict[int, str]:
    """The descendants of a process, living ones, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(entry.parent.name)] = int(parent)
    members = {process}
    while grown := {child for child, parent in parents.items() if parent in members} - members:
        members |= grown
    return {member: command(member) for member in members - {process}}


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def none_left(members: Iterable[int], within: float = 60.0) -> bool:
    """Whether processes end within some seconds."""
    until = time.monotonic() + within
    left = set(members)
    while left and time.monotonic() < until:
        left = {member for member in left if command(member)}
        time.sleep(0.2)
    return not left


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    subprocess.run([ENVIRONMENT / "python", ROOT / "scripts" / "make_tiny_model.py", folder], check=True)
    return folder


@dataclass(frozen=True)
class Shared:
    """The server that most tests use, and how long it took to start."""

    server: Server
    seconds: float

    @property
    def overrides(self) -> tuple[str, ...]:
        return (*ASKING, f"backbone.url={self.server.root}", "backbone.model=tiny")


@pytest.fixture(scope="module")
def shared(model, tmp_path_factory) -> Iterator[Shared]:
    config, _ = composed(*launching(model), f"results={tmp_path_factory.mktemp('logs')}")
    server = Server(built(config, "backbone.server"), model=str(model), port=free_port())
    started = time.monotonic()
    server.start(quiet)
    try:
        yield Shared(server=server, seconds=time.monotonic() - started)
    finally:
        server.stop()
