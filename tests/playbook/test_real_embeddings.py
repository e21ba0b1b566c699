"""A real sentence model, from its folder.

``ACE_BENCH_SENTENCE_MODEL`` names a folder of sentence-transformers, such as a copy of all-MiniLM-L6-v2; without it, or
without the extra ``embeddings``, these tests are skipped.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from ace_bench.playbook.embed import make_embedder
from ace_bench.playbook.refine import Refiner
from tests.launching import launch

PAIRS = Path(__file__).with_name("bullet_pairs.jsonl")
"""Bullets, each with a copy of small changes, the same lesson in other words, and another lesson in like words."""
MODEL = Path(os.environ.get("ACE_BENCH_SENTENCE_MODEL", "/nonexistent"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not MODEL.is_dir() or find_spec("sentence_transformers") is None,
        reason="needs sentence-transformers, and ACE_BENCH_SENTENCE_MODEL naming a folder of a model",
    ),
]


def test_the_default_threshold_separates_copies_from_other_lessons() -> None:
    embedder, default = make_embedder(str(MODEL)), Refiner.__init__.__kwdefaults__["threshold"]
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    bullets = embedder.embed([pair["bullet"] for pair in pairs])
    shares = {
        kind: ((bullets * embedder.embed([pair[kind] for pair in pairs])).sum(axis=1) >= default).mean()
        for kind in ("copy", "different")
    }
    assert shares["copy"] > 0.9
    assert shares["different"] < 0.1


def test_a_run_merges_by_the_model(tmp_path: Path) -> None:
    sizes = ("limit={train: 2, val: 1, test: 2}", "mode.epochs=1", "estimate=false")
    ran = launch(tmp_path, "task=finer", "method=ace", "backbone=embedded", *sizes, f"embedder={MODEL}")
    assert ran.status == 0
    identity = (ran.folder / "identity.json").read_text()
    assert "folder: sha256" in identity
    assert str(MODEL) not in identity
