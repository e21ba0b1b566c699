"""Makes embedders by their names: hashed words, models of two libraries, and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ace_bench.core.embedders import HASHING, STATIC, EmbedderSettings, embedder_identity, model_folder
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_bench.core.settings import Text
from ace_bench.playbook.embeddings import Embedder, HashingEmbedder, Matrix
from ace_bench.store.vectors import VectorStore, text_key

_WITHOUT_TORCH = (
    "use embedder=static:MODEL (no torch), an endpoint, embedder={url: http://HOST:PORT/v1, model: NAME}, or hashed "
    "words, embedder=hashing"
)


@dataclass
class ModelEmbedder:
    """Embeds by a model of a library, which the first call of ``embed`` loads, even without texts.

    ``load`` returns what encodes texts as unit vectors; it raises ``ConfigError`` if the model cannot be loaded.
    Embedders of the same ``name`` are equal. With a ``store`` only texts that it does not have are embedded.
    """

    name: str
    load: Callable[[], Callable[[list[str]], Any]] = field(compare=False)
    store: VectorStore | None = field(default=None, compare=False)

    @cached_property
    def _encode(self) -> Callable[[list[str]], Any]:
        return self.load()

    @cached_property
    def _identity(self) -> str:
        return str(embedder_identity(self.name))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the rows; raises ``ConfigError`` if the model cannot be loaded."""
        if self.store is None or not texts:
            return self._compute(texts)
        keys = [text_key(text) for text in texts]
        vectors = self.store.find(self._identity, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            rows = self._compute([*missing.values()])
            new = {key: row.astype("<f4").tobytes() for key, row in zip(missing, rows, strict=True)}
            self.store.add(self._identity, new)
            vectors |= new
        return np.array([np.frombuffer(vectors[key], dtype="<f4") for key in keys], dtype=np.float32)

    def _compute(self, texts: Sequence[str]) -> Matrix:
        return np.asarray(self._encode(list(texts) or [""]), dtype=np.float32)[: len(texts)]


def _load_transformer(name: str) -> Callable[[list[str]], Any]:
    """Load a sentence-transformers model by name or path (the official code uses ``all-mpnet-base-v2``)."""
    require("the embedder", "sentence_transformers", otherwise=_WITHOUT_TORCH)
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(name)
    except Exception as error:  # the library and what it loads with raise many kinds
        cause = " ".join(str(error).split())
        raise ConfigError(
            f"the embedding model {name!r} cannot be loaded ({cause}): name a complete folder that "
            "SentenceTransformer.save_pretrained wrote or a model of the hub that can be downloaded, or take "
            "embedder=hashing"
        ) from error
    return partial(model.encode, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)


def _load_static(name: str) -> Callable[[list[str]], Any]:
    """Load a static model of the library model2vec: the mean of its tokens' vectors, without torch.

    A text without a known token has a row of zeros, which is similar to nothing.
    """
    require(f"embedder={STATIC}{name}", "model2vec", otherwise="use hashed words, embedder=hashing")
    from model2vec import StaticModel

    try:
        # A model that was downloaded once is used from then on, also without a network.
        model = StaticModel.from_pretrained(name, force_download=False)
    except Exception as error:  # the library and what it loads with raise many kinds
        raise ConfigError(
            f"the static model {name!r} cannot be loaded: {error}; name a folder that "
            "StaticModel.save_pretrained wrote, or a model of the hub such as minishlab/potion-base-8M"
        ) from error
    # In one process: the library starts others for many texts.
    return partial(model.encode, normalize=True, use_multiprocessing=False)


@dataclass
class EndpointEmbedder:
    """Embeds by the counted calls of the run that ``connect`` names; without texts it needs no run."""

    settings: EmbedderSettings
    _source: Embedder | None = field(default=None, init=False, compare=False)

    def connect(self, source: Embedder) -> None:
        """Ask ``source`` for the vectors from now on."""
        self._source = source

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the rows; raises what a call of the run raises."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        if self._source is None:
            raise ConfigError("the embeddings of an endpoint are counted by a run: elsewhere pass embedder=hashing")
        return self._source.embed(texts)


def make_embedder(name: Text | EmbedderSettings) -> Embedder:
    """Return the embedder of a name or an endpoint.

    Names: ``hashing``, ``static:MODEL`` with a model of model2vec, or a sentence-transformers model; models are named
    by the hub's name or a folder. Raises ``ConfigError`` for a path that is not a model's folder.
    """
    if isinstance(name, EmbedderSettings):
        return EndpointEmbedder(name)
    if name == HASHING:
        return HashingEmbedder()
    model = name.removeprefix(STATIC)
    folder = model_folder(name)
    if folder is not None:
        _check_folder(folder)
        model = str(folder)
    if name.startswith(STATIC):
        return ModelEmbedder(f"{STATIC}{model}", partial(_load_static, model))
    return ModelEmbedder(model, partial(_load_transformer, model))


def _check_folder(folder: Path) -> None:
    try:
        file_names = {path.name for path in folder.iterdir()}
    except OSError as error:
        problem = f"cannot be opened ({error.strerror})"
    else:
        problem = "" if file_names & {"config.json", "modules.json"} else "has no modules.json or config.json"
    if problem:
        raise ConfigError(
            f"the folder of the embedding model, {folder}, {problem}: name one that save_pretrained of "
            "sentence-transformers (or, after static:, of model2vec) wrote, a model of the hub such as "
            "sentence-transformers/all-MiniLM-L6-v2, or embedder=hashing"
        )
