"""Embeddings by a static model, with the real library and a model file that the test makes."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from importlib.util import find_spec

import numpy as np
import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.core.errors import ConfigError
from ace_bench.playbook.embed import ModelEmbedder, make_embedder
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.settings import decode
from ace_bench.store.vectors import FILE, VectorStore
from tests.backbones.serving import running
from tests.launching import composed, launch
from tests.wrong.refusing import refusal

WORDS = ("refund", "money", "back", "invoice", "bill", "laptop", "screen", "the", "a", "of")
NEAR = {"money": "refund", "bill": "invoice"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved model in which some words have nearly the vectors of others."""
    model2vec, tokenizers = pytest.importorskip("model2vec"), pytest.importorskip("tokenizers")
    rng = np.random.default_rng(0)
    vectors = {word: rng.normal(size=32) for word in WORDS}
    vectors |= {word: vectors[other] + 0.1 * rng.normal(size=32) for word, other in NEAR.items()}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, **{word: place + 1 for place, word in enumerate(WORDS)}}, "[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    rows = np.stack([np.zeros(32), *(vectors[word] for word in WORDS)]).astype(np.float32)
    folder = tmp_path_factory.mktemp("static") / "model"
    model2vec.StaticModel(rows, tokenizer).save_pretrained(folder)
    return folder


def test_words_of_like_meaning_are_near_and_rows_are_independent(model):
    embedder = make_embedder(f"static:{model}")
    assert isinstance(embedder, ModelEmbedder)
    texts = ["the refund", "the money", "the laptop", "qwerty", ""]
    rows = embedder.embed(texts)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1, 0, 0], abs=1e-5)
    assert rows[0] @ rows[1] > 0.9 > rows[0] @ rows[2]
    assert np.array_equal(rows[2:3], embedder.embed(texts[2:3]))
    assert embedder.embed([]).shape[0] == 0


def test_a_model_that_cannot_be_loaded_is_an_error_with_the_fix(tmp_path):
    pytest.importorskip("model2vec")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"cannot be loaded.*save_pretrained"):
        make_embedder(f"static:{tmp_path}").embed([])


MODEL = ("backbone=openai_compatible", "backbone.model=m", "backbone.api_key_env=null", "task.source=sample")


def test_the_default_with_a_real_model_is_what_is_installed_and_said():
    if find_spec("sentence_transformers"):
        pytest.skip("sentence-transformers is installed")
    plan = assemble(identify(decode(settle(*composed(*MODEL, "backbone.base_url=http://127.0.0.1:1/v1")))))
    assert plan.metadata["embedder"] == plan.identity.settings["embedder"] == "hashing"
    assert "sentence-transformers is not installed" in plan.notes[0]
    chosen = assemble(
        identify(decode(settle(*composed(*MODEL, "backbone.base_url=http://127.0.0.1:1/v1", "embedder=hashing"))))
    )
    assert chosen.identity.digest == plan.identity.digest
    assert not chosen.notes


def test_a_run_takes_a_static_model(model, tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        settings = ("limit={train: 2, val: 1, test: 2}", "mode.epochs=1", f"backbone.base_url={server.address}")
        named = ("backbone.model=embedded", "backbone.simulated=true", "estimate=false", f"embedder=static:{model}")
        ran = launch(tmp_path, *MODEL, *settings, *named)
    assert ran.status == 0
    assert "static:folder: sha256 " in (ran.folder / "identity.json").read_text()


def test_a_text_that_the_vector_store_has_is_not_embedded_again(model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    embedded = []
    for folder, texts in ((model, ["the refund", "the bill"]), (copy, ["the bill", "a laptop", "the refund"])):
        embedder = make_embedder(f"static:{folder}")
        with closing(VectorStore(tmp_path / "store")) as embedder.store:
            encode = embedder.load()
            embedder.load = lambda encode=encode: lambda asked: embedded.append(asked) or encode(asked)
            found = embedder.embed(texts)
        assert np.array_equal(found, make_embedder(f"static:{folder}").embed(texts))
    assert embedded == [["the refund", "the bill"], ["a laptop"]], "the copy has the same content"


def test_runs_share_the_vector_store_and_one_that_is_damaged_stops_them_first(model, tmp_path, capsys):
    store, results = tmp_path / "store", tmp_path / "results"
    shared = (f"embedder=static:{model}", f"vector_store={store}", "limit={train: 2, val: 1, test: 2}", "mode.epochs=1")
    ran = launch(results, "task=finer", "backbone=embedded", *shared)
    other = launch(results, "task=finer", "backbone=embedded", *shared[:1], *shared[2:], "name=without")
    assert ran.metrics["headline"] == other.metrics["headline"]
    with closing(sqlite3.connect(store / FILE)) as file, file:
        file.execute("UPDATE vectors SET checksum = 0")
    capsys.readouterr()
    stopped = launch(results, "task=finer", "backbone=embedded", *shared, "seed=2")
    assert stopped.status == 2
    assert "differs from its checksum): delete " in capsys.readouterr().err
    (store / FILE).unlink()
    assert launch(results, "task=finer", "backbone=embedded", *shared, "seed=2").status == 0
    capsys.readouterr()
    (store / FILE).write_bytes(b"not a database" * 400)
    assert f"{FILE}*, and its texts are embedded again" in refusal([*shared, "seed=1"], tmp_path / "none", capsys)
