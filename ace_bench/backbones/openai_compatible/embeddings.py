"""Embeddings from an OpenAI-compatible endpoint (``/v1/embeddings``), paid for once."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np

from ace_bench.backbones.openai_compatible.attempts import Clock, attempt
from ace_bench.backbones.openai_compatible.endpoint import Address, Endpoint, encode
from ace_bench.backbones.openai_compatible.outcomes import accept
from ace_bench.backbones.openai_compatible.pacing import Pacer
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.contexts.playbook.embed import Matrix
from ace_bench.core.errors import BackboneUnavailable, RolloutFault, StoreError
from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.types import Stage
from ace_bench.store.files import PRIVATE, make_folders
from ace_bench.store.ledger import Ledger
from ace_bench.store.prices import PriceCard

ROLE = "embedder"
_BATCH = 128
_LOCKED_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL)"


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Rows(msgspec.Struct):
    data: list[_Row]


class EmbeddingsEndpoint:
    """Embeds texts over HTTP, in batches, with the retries and the pacing of other calls.

    Every vector is kept in the SQLite file ``cache``, by model and text, as soon as its batch has been answered: what
    was paid for is not paid for again, also after a kill. The ledger counts requests, tokens and dollars under the role
    ``embedder``; what the server does not report is ``None``.
    """

    def __init__(self, *, address: Address, cache: Path, prices: PriceCard, retry: Retry, rate: Rate):
        """Open or create the cache; raises ``StoreError`` if it cannot be used."""
        self.ledger = Ledger()
        self._endpoint = Endpoint(address)
        self._prices = prices
        self._retry = retry
        self._clock = Clock()
        self._pacer = Pacer(rate, now=self._clock.now)
        self._model = address.model
        self._cache = cache
        try:
            make_folders(cache.parent, PRIVATE)
            with closing(self._connect()) as connection:
                connection.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"the cache of embeddings {cache} cannot be used ({error}): choose another file"
            ) from error

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector per text; raises ``BackboneUnavailable`` if the server gives none."""
        keys = [hashlib.sha256(f"{self._model}\n{text}".encode()).hexdigest() for text in texts]
        with closing(self._connect()) as connection:
            missing = {key: text for key, text in zip(keys, texts, strict=True) if _find(connection, key) is None}
            todo = list(missing.items())
            for batch in (todo[at : at + _BATCH] for at in range(0, len(todo), _BATCH)):
                vectors = self._ask([text for _, text in batch])
                rows = [(key, vector.tobytes()) for (key, _), vector in zip(batch, vectors, strict=True)]
                connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            found = [np.frombuffer(_find(connection, key) or b"", dtype=np.float32) for key in keys]
        return np.array(found, dtype=np.float32)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._cache, timeout=_LOCKED_S, isolation_level=None)

    def _ask(self, texts: Sequence[str]) -> Matrix:
        body = embeddings_request(self._model, texts)
        outcome = attempt(
            lambda: self._endpoint.embeddings(body),
            retry=self._retry,
            pacer=self._pacer,
            tokens=sum(map(estimate_tokens, texts)),
            clock=self._clock,
        )
        try:
            completion = accept(outcome, schema=None, prices=self._prices, endpoint=self._endpoint)
        except RolloutFault as error:
            raise BackboneUnavailable(f"the embeddings endpoint gave no embeddings: {error.fault.message}") from error
        self.ledger.add(Stage.EVALUATE, ROLE, completion)
        return unit_vectors(completion.text, len(texts))


def _find(connection: sqlite3.Connection, key: str) -> bytes | None:
    row = connection.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
    return None if row is None else bytes(row[0])


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
