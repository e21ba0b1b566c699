"""Requests and replies of an OpenAI-compatible endpoint of embeddings (``/v1/embeddings``)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ace_bench.backbones.openai_compatible.endpoint import encode
from ace_bench.contexts.playbook.embed import Matrix
from ace_bench.core.errors import BackboneUnavailable


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Rows(msgspec.Struct):
    data: list[_Row]


def embeddings_request(model: str, texts: Sequence[str]) -> bytes:
    """Return the body of a request. The API refuses empty texts."""
    return encode({"model": model, "input": [text or " " for text in texts], "encoding_format": "float"})


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
