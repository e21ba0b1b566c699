"""Embedders map texts to unit vectors, whose dot products are cosine similarities."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ace_bench.core.embedders import HASHING, STATIC, EmbedderSettings, model_folder
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_bench.core.settings import Count, Text

Matrix = npt.NDArray[np.float32]

_TOKEN = re.compile(rb"[0-9a-z_\x80-\xff]+|[^\s]")
_GRAM = 4
_SCALE = 16
_LONGEST_WORD = 12

_WITHOUT_TORCH = (
    "use embedder=static:MODEL (no torch), an endpoint, embedder={url: http://HOST:PORT/v1, model: NAME}, or hashed "
    "words, embedder=hashing"
)


class Embedder(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector per text: shape (len(texts), dimensions). Rows do not depend on the other texts."""
        ...


@dataclass
class HashingEmbedder:
    """Hashes words, pairs of words and character 4-grams, to find near-duplicates by wording without a model.

    A hash that is the same on every machine gives each feature one of ``dim`` places and a sign. Longer words weigh
    more (an approximation of rarity without a corpus); a pair weighs the mean of its words. Pairs distinguish "choose
    A, not B" from "choose B, not A". A place counts by the square root of its sum. Everything is whole numbers up to
    the last division, so rows are equal to the bit on all machines. Synonyms are not recognised; a sentence model does.
    """

    dim: Count = 512

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the rows; below 0.1 ms for a bullet of 300 characters."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._row(text)
        return rows

    def _row(self, text: str) -> npt.NDArray[np.float64]:
        hashes, weights = _features(_TOKEN.findall(text.casefold().encode()))
        signed = weights * (1.0 - 2.0 * (hashes & np.uint32(1)))
        sums = np.bincount((hashes >> np.uint32(1)) % np.uint32(self.dim), weights=signed, minlength=self.dim)
        sums = np.copysign(np.rint(_SCALE * np.sqrt(np.abs(sums))), sums)
        square = float(sums @ sums)  # whole numbers far below 2**53: exact in any order of summing
        if square == 0:
            sums[0], square = 1.0, 1.0
        row: npt.NDArray[np.float64] = sums / math.sqrt(square)
        return row


def _features(tokens: Sequence[bytes]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
    """Hash all features of a text; repeated features are repeated."""
    n = len(tokens)
    words = np.fromiter(map(zlib.crc32, tokens), np.uint32, n)
    word_weights = 2 * np.minimum(np.fromiter(map(len, tokens), np.float64, n), _LONGEST_WORD)
    pairs = ((words[:-1] ^ np.uint32(0x5BD1E995)) * np.uint32(0x01000193)) ^ words[1:]
    pair_weights = (word_weights[:-1] + word_weights[1:]) / 2
    data = b"  %b  " % b" ".join(tokens)
    # every four adjacent bytes read as one number
    grams = np.ndarray((len(data) - _GRAM + 1,), "<u4", buffer=data, strides=(1,))
    weights = np.concatenate([word_weights, pair_weights, np.ones(len(grams))])
    return _mixed(np.concatenate([words, pairs, grams], dtype=np.uint32)), weights


def _mixed(keys: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Mix the bits of each key (multiply and shift, twice)."""
    keys = np.multiply(keys, np.uint32(0x9E3779B1))
    keys ^= np.right_shift(keys, np.uint32(15))
    keys *= np.uint32(0x85EBCA6B)
    keys ^= np.right_shift(keys, np.uint32(13))
    return keys


@dataclass
class ModelEmbedder:
    """Embeds by a model of a library, which the first call of ``embed`` loads, even without texts.

    ``load`` returns what encodes texts as unit vectors; it raises ``ConfigError`` where the model cannot be loaded.
    Embedders of the same ``name`` are equal.
    """

    name: str
    load: Callable[[], Callable[[list[str]], Any]] = field(compare=False)

    def __post_init__(self) -> None:
        """Load the model once."""
        self.load = cache(self.load)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the rows; raises ``ConfigError`` where the model cannot be loaded."""
        rows = self.load()(list(texts) or [""])
        return np.asarray(rows, dtype=np.float32)[: len(texts)]


def sentence_transformer(name: str) -> ModelEmbedder:
    """Return a sentence-transformers model by name or path (the official code uses ``all-mpnet-base-v2``)."""

    def load() -> Callable[[list[str]], Any]:
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

    return ModelEmbedder(name, load)


def static_model(name: str) -> ModelEmbedder:
    """Return a static model of the library model2vec: the mean of its tokens' vectors, without torch.

    A text without a known token has a row of zeros, which is similar to nothing.
    """

    def load() -> Callable[[list[str]], Any]:
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

    return ModelEmbedder(f"{STATIC}{name}", load)


@dataclass
class EndpointEmbedder:
    """Embeds by the counted calls of the run that ``connect`` names; without texts it needs no run."""

    settings: EmbedderSettings
    _source: Embedder | None = field(default=None, init=False, compare=False)

    def connect(self, source: Embedder) -> None:
        """Take the vectors from here on."""
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
    return static_model(model) if name.startswith(STATIC) else sentence_transformer(model)


def _check_folder(folder: Path) -> None:
    try:
        found = {path.name for path in folder.iterdir()}
    except OSError as error:
        problem = f"cannot be opened ({error.strerror})"
    else:
        problem = "" if found & {"config.json", "modules.json"} else "has no modules.json or config.json"
    if problem:
        raise ConfigError(
            f"the folder of the embedding model, {folder}, {problem}: name one that save_pretrained of "
            "sentence-transformers (or, after static:, of model2vec) wrote, a model of the hub such as "
            "sentence-transformers/all-MiniLM-L6-v2, or embedder=hashing"
        )
