"""Faults that a test server injects with given probabilities, in a reproducible order."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping

KINDS = ("http_500", "http_429", "drop", "truncate", "empty", "no_code")
"""Server error; rate limit; connection closed without a reply; reply cut in the middle; reply without text; an agent's
reply without its code."""


class Faults:
    """Draws at most one fault a request. The n-th request draws the same fault under the same seed."""

    def __init__(self, *, chances: Mapping[str, float], seed: int = 0):
        unknown = sorted(set(chances) - set(KINDS))
        if unknown:
            raise ValueError(f"unknown fault {unknown[0]!r}; the faults are {', '.join(KINDS)}")
        if any(not 0 <= chance <= 1 for chance in chances.values()) or sum(chances.values()) > 1:
            raise ValueError("each chance of a fault lies in [0, 1], and so does their sum")
        self._chances = tuple((kind, chances[kind]) for kind in KINDS if kind in chances)
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def draw(self) -> str | None:
        """Return the fault of the next request, or ``None``."""
        with self._lock:
            point = self._random.random()
        for kind, chance in self._chances:
            if point < chance:
                return kind
            point -= chance
        return None


def parse_chances(text: str) -> dict[str, float]:
    """Read ``http_500=0.1,drop=0.05``; raises ``ValueError`` with the piece that is wrong."""
    chances: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        kind, _, chance = piece.partition("=")
        try:
            chances[kind.strip()] = float(chance)
        except ValueError as error:
            raise ValueError(f"{piece!r} is not of the form kind=chance") from error
    return chances
