"""SmolLM2-135M on a llama.cpp server of its own, on this machine's CPUs: `make test-real`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.backbones.vllm.server import Server
from tests.launching import ROOT, built, composed

GGUF = ROOT / ".smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SHORT = ("limit={train: 2, val: 1, test: 1}", "concurrency=1", "backbone.sampling.max_tokens=70")


@dataclass(frozen=True)
class Served:
    """A server of the model that runs, and what it has answered."""

    name: str
    server: Server

    @property
    def overrides(self) -> tuple[str, ...]:
        own = ("backbone=smollm2", "backbone.launch=false", f"backbone.url={self.server.root}")
        return ("experiment=first_contact", *own, f"backbone.model={self.name}", *SHORT)

    def requests(self) -> int:
        """Count the chat completions in the server's log, refused ones too."""
        return self.server.log.read_text(errors="replace").count("POST /v1/chat/completions")


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Iterator[Served]:
    with _serving(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture(scope="session")
def embeddings(tmp_path_factory) -> Iterator[Served]:
    with _serving(tmp_path_factory.mktemp("embeddings"), "--embeddings", "--pooling", "mean") as served:
        yield served


@contextmanager
def _serving(results: Path, *flags: str) -> Iterator[Served]:
    if not GGUF.exists():
        pytest.skip(f"{GGUF} is missing: make real-model")
    one_slot = "backbone.server.slots=1"  # so that the same calls in the same order get the same replies
    backbone = composed("backbone=smollm2", one_slot, f"results={results}")[0]
    backbone.backbone.server.flags += flags
    server = Server(built(backbone, "backbone.server"), model=str(GGUF), port=free_port())
    server.start(lambda _: None)
    try:
        yield Served(name=backbone.backbone.server.served_name, server=server)
    finally:
        server.stop()
