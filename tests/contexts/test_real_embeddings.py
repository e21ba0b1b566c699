"""A real sentence model, from its folder and from a server.

``ACE_BENCH_SENTENCE_MODEL`` names a folder of sentence-transformers, such as a copy of all-MiniLM-L6-v2; without it, or
without the extra ``embeddings``, these tests are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.core.errors import ConfigError
from ace_retrieval import command as retrieval
from ace_retrieval.measuring import Variant
from scripts.measure_embedders import similarities
from tests.backbones.serving import running
from tests.launching import launch

MODEL = Path(os.environ.get("ACE_BENCH_SENTENCE_MODEL", "/nonexistent"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not MODEL.is_dir() or find_spec("sentence_transformers") is None,
        reason="needs sentence-transformers, and ACE_BENCH_SENTENCE_MODEL naming a folder of a model",
    ),
]


class Handler(BaseHTTPRequestHandler):
    """Answers ``/v1/embeddings`` with the library itself, as other servers of sentence models do."""

    model = None

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = self.model.encode(asked["input"]).tolist()
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        usage = {"prompt_tokens": len(rows), "total_tokens": len(rows)}
        body = json.dumps({"object": "list", "data": data, "model": asked["model"], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from sentence_transformers import SentenceTransformer

    Handler.model = SentenceTransformer(str(MODEL), device="cpu")
    with running(HTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


def test_rows_are_unit_vectors_and_synonyms_are_near() -> None:
    embedder = make_embedder(str(MODEL))
    rows = embedder.embed(["How old are you?", "What is your age?", "Divide income by revenue."])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows.dtype == np.float32
    assert rows[0] @ rows[1] > 0.7 > rows[0] @ rows[2]
    assert embedder.embed([]).shape == (0, rows.shape[1])


def test_the_default_threshold_separates_copies_from_other_lessons() -> None:
    found = similarities(make_embedder(str(MODEL)))
    default = Refiner.__init__.__kwdefaults__["threshold"]
    assert (found["copy"] >= default).mean() > 0.9
    assert (found["different"] >= default).mean() < 0.1


def test_a_folder_without_its_weights_is_an_error_with_the_fix(tmp_path: Path) -> None:
    broken = copytree(MODEL, tmp_path / "model", ignore=lambda _, names: [n for n in names if "safetensors" in n])
    with pytest.raises(ConfigError, match=r"cannot be loaded.*name a complete folder"):
        make_embedder(str(broken)).embed([])


def test_served_it_finds_what_it_finds_from_its_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [Variant(name="bm25", mode="bm25"), Variant(name="embeddings", mode="embeddings")]
    monkeypatch.setattr(retrieval, "retriever_variants", lambda **_: two)
    found = []
    for given in ([str(MODEL)], ["m", "--embeddings-url", url, "--embeddings-cache", str(tmp_path / "vectors")]):
        out = tmp_path / "figures.json"
        assert retrieval.main(["--embedder", *given, "--json", str(out)]) == 0
        rows = [(one["wording"], one["way"], one["recall_1"], one["recall_5"]) for one in json.loads(out.read_text())]
        found.append(rows)
    assert found[0] == found[1]
    distant = {way: recall for wording, way, recall, _ in found[0] if wording == "distant"}
    assert distant["embeddings"] > 2 * distant["bm25"]


@pytest.mark.parametrize("served", [False, True])
def test_a_run_merges_by_the_model(served: bool, url: str, tmp_path: Path) -> None:
    embedder = f"{{url: '{url}', model: m}}" if served else str(MODEL)
    sizes = ("limit={train: 2, val: 1, test: 2}", "mode.epochs=1", "estimate=false")
    ran = launch(tmp_path, "task=finer", "method=ace", "backbone=embedded", *sizes, f"embedder={embedder}")
    assert ran.status == 0
    identity = (ran.folder / "identity.json").read_text()
    assert ("endpoint: m" if served else "folder: sha256") in identity
    assert str(MODEL) not in identity
