"""How much a question is like lessons: shared features weigh more the fewer lessons have them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol

_YOUNG = 20


class Featured(Protocol):
    """A lesson as weighted features; ``length`` is their Euclidean length, 1 for none."""

    @property
    def features(self) -> Mapping[str, float]:
        """Weight of each feature."""
        ...

    @property
    def length(self) -> float:
        """Length of the weights, see ``length_of``."""
        ...


def length_of(features: Mapping[str, float]) -> float:
    """Euclidean length of the weights, 1 where there are none."""
    return math.sqrt(math.fsum(weight * weight for weight in features.values())) or 1.0


def likenesses(own: Mapping[str, float], lessons: Sequence[Featured]) -> list[tuple[float, int]]:
    """Similarity in about [0, 1] to every lesson that shares a feature, with its place, in the order of the lessons.

    Only the question's features are counted over the lessons, so that a playbook that grows by one entry needs no
    new index. Sums are exact (``fsum``): they must not depend on the order of a set.
    """
    shared = [own.keys() & lesson.features.keys() for lesson in lessons]
    counts = Counter(chain.from_iterable(shared))
    # The floor keeps a young playbook from taking every word for a rare one.
    total = max(len(lessons), _YOUNG) + 1
    rarity = {feature: math.log(total / (counts[feature] + 0.5)) for feature in own}
    value = {feature: weight * rarity[feature] ** 2 for feature, weight in own.items()}
    length = math.sqrt(math.fsum(weight * value[feature] for feature, weight in own.items()))
    typical = math.fsum(rarity.values()) / (len(rarity) or 1)
    return [
        (
            math.fsum([value[feature] * lesson.features[feature] for feature in common])
            / (length * typical * lesson.length),
            place,
        )
        for place, (common, lesson) in enumerate(zip(shared, lessons, strict=True))
        if common
    ]
