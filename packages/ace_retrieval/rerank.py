"""Rerankers score how well a text answers a query by reading both together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_retrieval.bm25 import Scores

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class Reranker(Protocol):
    """Scores texts for a query."""

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return a score per text, higher for more relevant."""
        ...


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder by name or path. The model loads with the first call, even an empty one."""

    def __init__(self, model: str):
        require("a cross-encoder", "sentence_transformers", otherwise="use retrieval without reranking")
        self._name = model
        self._model: CrossEncoder | None = None

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the model's scores; raises ``ConfigError`` if the model cannot be loaded."""
        model = self._loaded()
        if not texts:
            return np.zeros(0, dtype=np.float32)
        return np.asarray(model.predict([(query, text) for text in texts], show_progress_bar=False), dtype=np.float32)

    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            from sentence_transformers import CrossEncoder

            try:
                self._model = CrossEncoder(self._name, max_length=512)
            except (OSError, ValueError) as error:
                raise ConfigError(f"the cross-encoder {self._name!r} cannot be loaded: {error}") from error
        return self._model
