"""Selection by similarity: shared code for contexts that show each sample only their nearest items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from ace_bench.core.types import Sample
from ace_bench.playbook.embeddings import Embedder, EmbeddingMemo
from ace_bench.playbook.playbook import Playbook


class Retrieval(Protocol):
    """Selects bullets, the same ones for the same question and playbook; safe between threads."""

    mode: str
    """How it ranks; ``off`` shows the whole playbook and uses no embedder."""
    embedder: Embedder

    def share(self, memo: EmbeddingMemo) -> None:
        """Share a memo of embeddings, if its embedder is equal."""
        ...

    def prepare(self) -> None:
        """Load the models in use, so that a failure to load one stops the run before the first call."""
        ...

    def select(self, playbook: Playbook, query: str) -> Playbook:
        """Return the playbook with only the bullets for a query, in order of creation."""
        ...


class Near(NamedTuple):
    """The position of a text among those searched, and its cosine similarity."""

    place: int
    similarity: float


class NearestTexts:
    """Finds the texts most similar to others by the cosine of their embeddings; each text is embedded once.

    Threads may share one.
    """

    def __init__(self, embedder: Embedder):
        self._memo = EmbeddingMemo(embedder)

    def find(self, texts: Sequence[str], *, near: Sequence[str], top_k: int) -> tuple[Near, ...]:
        """Return at most ``top_k`` of ``texts`` most similar to any text in ``near``, the most similar last.

        Of equally similar texts the later one counts as more similar.
        """
        if not texts:
            return ()
        query_rows, text_rows = self._memo.rows(near), self._memo.rows(texts)
        similarities = (self._memo.matrix[text_rows] @ self._memo.matrix[query_rows].T).max(axis=1)
        order = np.argsort(similarities, kind="stable")[-top_k:]
        return tuple(Near(int(index), float(similarities[index])) for index in order)


@runtime_checkable
class SelectsNearest(Protocol):
    """A context that shows a sample only its nearest items."""

    def select(self, sample: Sample, nearest: NearestTexts) -> Self:
        """Return the part that the generator is shown for a sample."""
        ...
