"""Embeddings of texts: hashed words, ours because scikit-learn takes longer to load than a run, and a memo of them.

They are unit vectors, whose dot products are cosine similarities.
"""

from __future__ import annotations

import math
import re
import threading
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ace_bench.contexts.base import Texts
from ace_bench.core.settings import Count

Matrix = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float32]

_TOKEN = re.compile(rb"[0-9a-z_\x80-\xff]+|[^\s]")
_GRAM = 4
_SCALE = 16
_LONGEST_WORD = 12

_NO_ROWS = np.zeros(0, dtype=np.intp)
_AT_ONCE = 1024
"""Texts that are embedded at once, so that a large playbook needs its embeddings in memory only once."""
_DECIMALS = 5
"""Similarities are rounded, so that equal ones tie on machines that sum in different orders."""
_MARGIN = 1e-4
"""More than a similarity changes by rounding and by the order of summing."""
_FEW = 8


@runtime_checkable
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
    hashes = np.fromiter(map(zlib.crc32, tokens), np.uint32, n)
    word_weights = 2 * np.minimum(np.fromiter(map(len, tokens), np.float64, n), _LONGEST_WORD)
    pairs = ((hashes[:-1] ^ np.uint32(0x5BD1E995)) * np.uint32(0x01000193)) ^ hashes[1:]
    pair_weights = (word_weights[:-1] + word_weights[1:]) / 2
    data = b"  %b  " % b" ".join(tokens)
    # every four adjacent bytes read as one number
    grams = np.ndarray((len(data) - _GRAM + 1,), "<u4", buffer=data, strides=(1,))
    weights = np.concatenate([word_weights, pair_weights, np.ones(len(grams))])
    return _mix_bits(np.concatenate([hashes, pairs, grams], dtype=np.uint32)), weights


def _mix_bits(keys: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Mix the bits of each key (multiply and shift, twice)."""
    keys = np.multiply(keys, np.uint32(0x9E3779B1))
    keys ^= np.right_shift(keys, np.uint32(15))
    keys *= np.uint32(0x85EBCA6B)
    keys ^= np.right_shift(keys, np.uint32(13))
    return keys


class Nearest(NamedTuple):
    """Places among some rows, the most similar first, with their rounded similarities."""

    places: Rows
    scores: Scores


class EmbeddingMemo:
    """Embeds every distinct text once and keeps the rows in one growing matrix. Threads may share it."""

    def __init__(self, embedder: Embedder):
        self.embedder = embedder
        self._rows: dict[str, int] = {}
        self._rows_of_blocks: WeakKeyDictionary[Texts, Rows] = WeakKeyDictionary()
        self._store: Matrix = np.zeros((0, 0), dtype=np.float32)
        self._lock = threading.RLock()  # models are not thread-safe

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, such as questions, without keeping them."""
        with self._lock:
            return self.embedder.embed(texts)

    def rows(self, texts: Sequence[str]) -> Rows:
        """Return each text's row number in ``matrix``; those not seen before are embedded."""
        with self._lock:
            rows = list(map(self._rows.get, texts))
            if None in rows:
                self._add([text for text in dict.fromkeys(texts) if text not in self._rows])
                rows = list(map(self._rows.get, texts))
            return np.array(rows, dtype=np.intp)

    def rows_of(self, blocks: Collection[Texts]) -> Rows:
        """Return the row number of each text of some blocks; a block seen before is one look-up."""
        with self._lock:
            parts = [self._rows_of_blocks.get(block) for block in blocks]
            new = [block for block, part in zip(blocks, parts, strict=True) if part is None]
            if new:
                self.rows([text for block in new for text in block.contents])
                self._rows_of_blocks.update((block, self.rows(block.contents)) for block in new)
                parts = [self._rows_of_blocks[block] for block in blocks]
            return np.concatenate([_NO_ROWS, *parts])

    @property
    def matrix(self) -> Matrix:
        """All rows so far, in order of first appearance; a view, not a copy."""
        return self._store[: len(self._rows)]

    def similarities(self, vectors: Matrix) -> Matrix:
        """Return the product of each vector with each row of ``matrix``: shape (vectors, rows)."""
        # For few vectors not by BLAS: its threads keep the cores busy for longer than the product takes.
        if len(vectors) <= _FEW:
            few: Matrix = np.einsum("ij,kj->ik", vectors, self.matrix)
            return few
        return vectors @ self.matrix.T

    def scores(self, rows: Rows, vector: npt.NDArray[np.float32]) -> Scores:
        """Return the similarities of some rows to a vector, computed and rounded to be equal on all machines."""
        scores: Scores = np.round(np.einsum("ij,j->i", self.matrix[rows], vector), _DECIMALS)
        return scores

    def nearest(self, rows: Rows, vector: npt.NDArray[np.float32], top_k: int) -> Nearest:
        """Return the most similar of some rows: a fast product finds those that may be among them, then the exact one.

        Of equally similar ones the first come first.
        """
        rough: Scores = np.einsum("ij,j->i", self.matrix, vector)[rows]
        near = np.arange(len(rough))
        if top_k < len(rough):
            least = np.partition(rough, len(rough) - top_k)[len(rough) - top_k]
            near = np.flatnonzero(rough >= least - _MARGIN)
        scores = self.scores(rows[near], vector)
        order = best_indices(scores, top_k)
        return Nearest(near[order], scores[order])

    def _add(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), _AT_ONCE):
            part = texts[start : start + _AT_ONCE]
            rows, used = self.embedder.embed(part), len(self._rows)
            if used + len(rows) > len(self._store):
                # The room is not in memory before it is used.
                grown = np.zeros((2 * (used + len(texts) - start), rows.shape[1]), dtype=np.float32)
                if used:
                    grown[:used] = self._store[:used]
                self._store = grown
            self._store[used : used + len(rows)] = rows
            self._rows.update(zip(part, range(used, used + len(rows)), strict=True))


def best_indices(scores: Scores, top_k: int) -> list[int]:
    """Return the indices of the highest scores, best first; equal ones keep their order."""
    above = np.arange(len(scores))
    if top_k < len(scores):
        above = np.flatnonzero(scores >= np.partition(scores, len(scores) - top_k)[len(scores) - top_k])
    order: list[int] = above[np.argsort(-scores[above], kind="stable")[:top_k]].tolist()
    return order
