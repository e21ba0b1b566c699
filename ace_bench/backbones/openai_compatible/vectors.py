"""The vectors of an embeddings call: its request, its reply, and its recorded text, which holds them to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import orjson

from ace_bench.contexts.playbook.embed import Matrix
from ace_bench.core.errors import BackboneUnavailable


class _Vectors(msgspec.Struct):
    """Little-endian 32-bit floats (base64 in JSON) by the key of their text."""

    vectors: dict[str, bytes]


def text_key(text: str) -> str:
    """Return the key of a text: 128 bits of its SHA-256. Half surrogate pairs count as they are sent."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]


def write_vectors(texts: Sequence[str], rows: Matrix) -> str:
    """Return the text of a call that embedded ``texts``; ``rows`` has shape (len(texts), dimensions)."""
    vectors = {text_key(text): row.astype("<f4").tobytes() for text, row in zip(texts, rows, strict=True)}
    return msgspec.json.encode(_Vectors(vectors=vectors)).decode()


def read_vectors(text: str) -> Mapping[str, bytes]:
    """Return the vectors in the text of a call."""
    return msgspec.json.decode(text, type=_Vectors).vectors


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Rows(msgspec.Struct):
    data: list[_Row]


def embeddings_request(model: str, texts: Sequence[str]) -> bytes:
    """Return the body of a request. The API refuses empty texts."""
    return orjson.dumps({"model": model, "input": [text or " " for text in texts], "encoding_format": "float"})


def unit_vectors(text: str, expected: int) -> Matrix:
    """Return the unit vectors of a reply in the order of the request; raises ``BackboneUnavailable``."""
    try:
        rows = sorted(msgspec.json.decode(text, type=_Rows).data, key=lambda row: row.index)
        vectors = np.array([row.embedding for row in rows], dtype=np.float32)
    except (msgspec.DecodeError, ValueError) as error:
        raise BackboneUnavailable(f"the embeddings endpoint sent no usable vectors: {error}") from error
    if [row.index for row in rows] != list(range(expected)) or vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise BackboneUnavailable(f"the embeddings endpoint sent {len(rows)} vectors for {expected} texts")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit
