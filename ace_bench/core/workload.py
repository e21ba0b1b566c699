"""How much a method will have to do, for estimates of its cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Bounds of a count, both included."""

    low: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)

    def times(self, factor: Span) -> Span:
        """Return the bounds of the product with another count."""
        return Span(self.low * factor.low, self.high * factor.high)


def exactly(count: float) -> Span:
    """Return a count that is known."""
    return Span(count, count)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What a method learns from: ``samples`` of a split, each pass counted, in ``steps``.

    ``acts`` says whether attempts act in an environment of their own, as on AppWorld.
    """

    samples: int
    steps: int
    split: str
    acts: bool = False


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What adaptation takes: rollouts of the generator, calls of the other ``roles``.

    Calls to ask again for an unreadable reply come on top. ``context_tokens`` is the most that the context may grow to,
    ``None`` without a limit. The replies of ``writers`` hold the whole context.
    """

    rollouts: Span
    roles: Mapping[str, Span]
    context_tokens: int | None = None
    writers: Collection[str] = ()
