"""Points of a run's curves: the figures that all trackers show, and how often."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ace_bench.runners.progress import Progress

EVERY_S = 5.0
"""The least seconds between two points of a curve."""


class Points:
    """Turns progress snapshots into points: at most one in ``every`` seconds, and always one at the end of a phase."""

    def __init__(self, seconds: float) -> None:
        self._every = seconds
        self._lock = threading.Lock()
        self._taken, self._phase = 0.0, ""
        self._shown: int | None = None

    def take(self, progress: Progress) -> dict[str, float] | None:
        """Return the figures to show now; ``None`` if none are due or work is only replayed."""
        with self._lock:
            calls = progress.spent.calls
            if self._shown is None:
                self._shown = calls  # of earlier processes
            now = time.monotonic()
            ends = self._phase != progress.phase or progress.done == progress.total
            if not (calls > self._shown and (ends or now - self._taken >= self._every)):
                return None
            self._taken, self._phase, self._shown = now, progress.phase, calls
        return _figures(progress)


def _figures(progress: Progress) -> dict[str, float]:
    """Return a snapshot's known figures, with the phase's name for its own figures."""
    phase = re.sub(r"\W+", "_", progress.phase)
    usage = progress.spent.usage
    figures = {
        f"{phase}/done": progress.done,
        f"{phase}/score": progress.score,
        f"{phase}/faults": progress.faults,
        "spent/calls": progress.spent.calls,
        "spent/prompt_tokens": usage.prompt,
        "spent/completion_tokens": usage.completion,
        "spent/cached_tokens": usage.cached,
        "spent/usd": usage.usd,
        "context/items": progress.context_size,
        "context/tokens": progress.context_tokens,
    }
    return {name: value for name, value in figures.items() if value is not None}


def flatten(value: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in nested metrics by their dotted names."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flatten(part, f"{name}.{key}" if name else key)
    elif isinstance(value, int | float):
        yield name, value
