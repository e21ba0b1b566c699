"""The text of a recorded embeddings call: the vectors of its texts, by key, to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from ace_bench.contexts.playbook.embed import Matrix


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
