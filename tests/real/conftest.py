"""SmolLM2-135M on servers of its own, on this machine's CPUs: `make test-real`."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.backbones.vllm.server import Server
from tests.launching import ROOT, built, composed

NEEDS = {
    "smollm2_llama_cpp": (".llamacpp/.ready", ".smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    "smollm2": (".vllm/.ready", ".smollm2/model/tokenizer_config.json"),
}
"""What a preset's server needs: `make llama-cpp` and `make real-model` make it."""
SHORT = ("limit={train: 2, val: 1, test: 1}", "concurrency=1", "backbone.sampling.max_tokens=70")


@dataclass(frozen=True)
class Served:
    """A server of the model that runs, and what it has answered."""

    preset: str
    name: str
    server: Server

    @property
    def overrides(self) -> tuple[str, ...]:
        own = (f"backbone={self.preset}", "backbone.launch=false")
        return (
            "experiment=first_contact",
            *own,
            f"backbone.url={self.server.root}",
            f"backbone.model={self.name}",
            *SHORT,
        )

    def requests(self) -> int:
        """Count the chat completions in the server's log, refused ones too."""
        return self.server.log.read_text(errors="replace").count("POST /v1/chat/completions")


def started(preset: str, results: object) -> Iterator[Served]:
    missing = [name for name in NEEDS[preset] if not (ROOT / name).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing")
    backbone = composed(f"backbone={preset}", f"results={results}")[0]
    server = Server(built(backbone, "backbone.server"), model=backbone.backbone.model, port=free_port())
    server.start(lambda _: None)
    try:
        yield Served(preset=preset, name=backbone.backbone.server.served_name, server=server)
    finally:
        server.stop()


@pytest.fixture(scope="session", params=NEEDS)
def served(request, tmp_path_factory) -> Iterator[Served]:
    yield from started(request.param, tmp_path_factory.mktemp("server"))
