"""Intervals for scores."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

RESAMPLES = 1_000


def bootstrap_interval(
    items: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    seed: int,
    group: Callable[[T], str] = lambda _: "",
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Percentile bootstrap over ``items``; ``None`` for fewer than two sampling units.

    The items of one ``group`` are drawn together, since they depend on each other; an item without a group ("") is its
    own unit. The statistic must not use groups itself: it gets a group twice that is drawn twice.
    """
    units = clusters(items, group)
    if len(units) < 2:
        return None
    rng = random.Random(seed)
    values = sorted(statistic([*chain.from_iterable(rng.choices(units, k=len(units)))]) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    return values[int(tail * RESAMPLES)], values[int((1 - tail) * RESAMPLES) - 1]


def clusters(items: Iterable[T], group: Callable[[T], str]) -> list[list[T]]:
    """Group items, in order of first appearance; an item without a group ("") is a group of its own."""
    found: dict[str | int, list[T]] = {}
    for place, item in enumerate(items):
        found.setdefault(group(item) or place, []).append(item)
    return list(found.values())
