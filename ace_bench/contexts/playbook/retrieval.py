"""Fine-grained retrieval (paper, section 3.1): the interface of what selects the bullets that a question is shown."""

from __future__ import annotations

from typing import Protocol

from ace_bench.contexts.playbook.embed import Embedder
from ace_bench.contexts.playbook.playbook import Playbook


class Retrieval(Protocol):
    """Selects bullets, the same ones for the same question and playbook; safe between threads."""

    mode: str
    """How it ranks; ``off`` shows the whole playbook and uses no embedder."""
    embedder: Embedder

    def prepare(self) -> None:
        """Load the models in use, so that a failure to load one stops the run before the first call."""
        ...

    def select(self, playbook: Playbook, query: str) -> Playbook:
        """Return the playbook with only the bullets for a query, in order of creation."""
        ...
