"""Embedders: unit rows that tell near-duplicates from the rest, the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.selection import NearestTexts
from ace_bench.core import resources
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import RunIdentity
from ace_bench.playbook.embed import EndpointEmbedder, make_embedder
from ace_bench.playbook.embeddings import EmbeddingMemo, HashingEmbedder, Matrix
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.settings import decode
from tests.launching import composed

from .making import Angles, examples

LONG = (
    "Check the account balance before you send a payment request, and top up from a payment card that has not "
    "expired when the balance is too {} for the amount that the task asks you to pay."
)


def similarity(one: str, other: str) -> float:
    rows = HashingEmbedder().embed([one, other])
    return float(rows[0] @ rows[1])


@given(st.lists(st.text(max_size=60), max_size=5))
@examples(60)
def test_rows_are_unit_vectors_and_their_own_affair(texts: list[str]) -> None:
    embedder = HashingEmbedder(dim=64)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    for row, text in zip(rows, texts, strict=True):
        assert (embedder.embed([text])[0] == row).all()


def test_rows_are_the_same_on_every_machine() -> None:
    rows = HashingEmbedder().embed([LONG.format("low"), "ROE = net income / equity", "", "çà 株式"])
    digest = hashlib.sha256(rows.astype("<f4").tobytes()).hexdigest()
    assert digest == "84c6c15d52980bf4a2d72d0c2e1bcdc9796dacac271d3f42999d25857b457729"


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        (LONG.format("low"), LONG.format("small"), 0.9, 1.1),
        ("Report two decimals.", "report  two\ndecimals.", 0.9, 1.1),
        ("Net margin = net income / revenue.", "Net margin = net income / revenue", 0.9, 1.1),
        ("For options choose TagAlpha, not TagBeta.", "For options choose TagBeta, not TagAlpha.", 0.4, 0.9),
        ("current ratio = current assets / liabilities", "quick ratio = (current assets - x) / debts", 0.2, 0.9),
        ("Count pages from zero.", "Net margin = income / revenue", -0.3, 0.3),
    ],
)
def test_near_duplicates_are_near_and_lessons_that_share_words_stay_apart(
    one: str, other: str, low: float, high: float
) -> None:
    assert low <= similarity(one, other) < high


class Recorder:
    """An embedder that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self._inner = HashingEmbedder(dim=32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        return self._inner.embed(texts)


def test_a_memo_embeds_every_text_once() -> None:
    recorder = Recorder()
    memo = EmbeddingMemo(recorder)
    assert memo.rows(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert memo.rows(["b", "c"]).tolist() == [1, 2]
    assert memo.rows([]).tolist() == []
    assert recorder.asked == [["a", "b"], ["c"]]
    many = [f"text {number}" for number in range(50)]
    rows = memo.rows(many)
    assert (memo.matrix[rows] == HashingEmbedder(dim=32).embed(many)).all()
    assert (memo.matrix[:3] == HashingEmbedder(dim=32).embed(["a", "b", "c"])).all(), "growing keeps old rows"


def test_the_nearest_texts_come_last_and_of_equal_ones_the_later() -> None:
    nearest = NearestTexts(Angles({"a": 0, "b": 40, "c": 90, "d": 40, "x": 0, "y": 100}))
    found = nearest.find(["a", "b", "c", "d"], near=["x", "y"], top_k=3)
    assert [one.place for one in found] == [3, 2, 0]
    assert [one.similarity for one in found] == pytest.approx([0.766, 0.985, 1], abs=1e-3)
    assert [one.place for one in nearest.find(["b", "d"], near=["x"], top_k=1)] == [1]
    assert nearest.find([], near=["x"], top_k=1) == ()


def test_an_endpoint_embeds_by_the_calls_of_a_run_and_without_texts_by_none() -> None:
    endpoint = EndpointEmbedder(settings=None)  # type: ignore[arg-type]
    assert endpoint.embed([]).shape == (0, 0)
    with pytest.raises(ConfigError, match="counted by a run: elsewhere pass embedder=hashing"):
        endpoint.embed(["a"])
    endpoint.connect(HashingEmbedder())
    assert (endpoint.embed(["a"]) == HashingEmbedder().embed(["a"])).all()


def test_a_missing_extra_is_named_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "find_spec", lambda _: None)
    embedder = make_embedder("all-mpnet-base-v2")
    with pytest.raises(ConfigError, match=r"pip install 'ace-bench\[embeddings\]'"):
        embedder.embed([""])


@pytest.mark.parametrize("prefix", ["", "static:"])
@pytest.mark.parametrize(
    ("name", "problem"),
    [("nowhere", "cannot be opened"), ("model.gguf", "cannot be opened"), ("empty", "has no modules.json")],
)
def test_a_path_that_is_not_a_models_folder_is_an_error_with_the_fix(
    prefix: str, name: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.gguf").touch()
    with pytest.raises(ConfigError, match=rf"{name}, {problem}.*: name one that save_pretrained.*hashing$"):
        make_embedder(f"{prefix}{tmp_path / name}")


def test_a_folder_is_identified_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def identity(embedder: str) -> RunIdentity:
        chosen = composed("task=finer", "method=ace", "backbone=embedded", f"embedder={embedder}")
        return identify(decode(settle(*chosen))).identity

    for name in ("model", "copy", "other"):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "1_Pooling" / "config.json").write_text("{}")
        (tmp_path / name / "README.md").write_text(name)
        (tmp_path / name / "model.safetensors").write_bytes(b"other" if name == "other" else b"weights")
    model = identity(str(tmp_path / "model"))
    assert str(tmp_path) not in str(model.dump())
    assert identity(str(tmp_path / "copy")) == model
    assert identity(str(tmp_path / "other")).digest != model.digest
    monkeypatch.chdir(tmp_path)
    assert identity("model") == identity("./model") == model
    (tmp_path / "model" / "model.safetensors").write_bytes(b"changed")
    assert identity("model").digest != model.digest
