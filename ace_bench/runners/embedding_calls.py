"""Embeddings of a run by calls through its gateway: recorded, counted and never paid for twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ace_bench.backbones.openai_compatible.vectors import read_vectors, text_key
from ace_bench.contexts.playbook.embed import Matrix
from ace_bench.core.backbones import Lm
from ace_bench.core.errors import BackboneUnavailable
from ace_bench.core.types import Completion, Message

_BATCH = 128


class EmbeddingCalls:
    """Embeds every text once in a run, whichever part asks for it; what earlier processes paid for is among ``paid``.

    ``lm`` returns the counted backbone for the stage that the run is in. Safe to use from several threads; one of them
    calls at a time.
    """

    def __init__(self, lm: Callable[[], Lm], paid: Iterable[Completion]):
        self._lm = lm
        self._lock = threading.Lock()
        self._rows: dict[str, bytes] = {}
        for completion in paid:
            self._rows.update(read_vectors(completion.text))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector per text; raises ``CallLost``, ``BudgetExhausted`` and whatever stops a run."""
        keys = [text_key(text) for text in texts]
        with self._lock:
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            todo = [*missing.values()]
            for batch in (todo[at : at + _BATCH] for at in range(0, len(todo), _BATCH)):
                reply = self._lm()([Message(role="user", content=text) for text in batch])
                self._rows.update(read_vectors(reply.text))
            rows = [self._rows[key] for key in keys]
        sizes = {len(row) for row in rows}
        if len(sizes) > 1:
            raise BackboneUnavailable(
                "the embeddings endpoint now sends vectors of another length than before: it serves another model; "
                "serve the first one again, or start a new run with resume=false"
            )
        return np.array([np.frombuffer(row, dtype="<f4") for row in rows], dtype=np.float32)
