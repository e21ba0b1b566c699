"""Embeddings of a real model by llama.cpp's server, as of any model of its size or larger: counted, kept, and used."""

import pytest

from tests.launching import launch

pytestmark = pytest.mark.real

SMALL = (
    *("task=finer", "task.source=sample", "limit={train: 1, val: 1, test: 2}", "mode.epochs=1"),
    *("method.retrieval.mode=embeddings", "method.retrieval.top_k=1"),
)


def test_a_run_takes_embeddings_of_a_served_model_and_the_next_one_finds_them(embeddings, tmp_path):
    endpoint = f"embedder={{url: {embeddings.server.root}/v1, model: {embeddings.name}}}"
    first, again = (
        launch(tmp_path / name, *SMALL, endpoint, f"vector_store={tmp_path / 'store'}") for name in ("first", "again")
    )
    calls = first.metrics["calls"]
    assert calls["adapt"]["embedder"] > 0 < calls["evaluate"]["embedder"]
    assert first.metrics["tokens"]["total"]["in"] > again.metrics["tokens"]["total"]["in"]
    assert again.metrics["replayed"] == {stage: roles["embedder"] for stage, roles in calls.items()}
    assert again.metrics["headline"] == first.metrics["headline"]
