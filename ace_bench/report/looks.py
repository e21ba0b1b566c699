"""Corrects tests for looks at the results while runs are added, by Pocock's (1977) boundary: all looks test alike.

Looks are assumed equally spaced in what is known at each. Closer ones depend more on each other, so less is wrong.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

_NODES = 64
"""Points at which the density between the bounds is known, for an error below 1e-9."""
_HALVINGS = 50


@lru_cache(maxsize=4096)
def overall_p(p: float, looks: int) -> float:
    """Return the chance, without an effect, that at least one of several looks has a p-value of at most ``p``.

    It integrates the density of the sums that no look has rejected so far (Armitage, McPherson and Rowe 1969).
    """
    if looks == 1 or not 0 < p < 1:
        return p
    bound = -NormalDist().inv_cdf(p / 2)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    sums, mass = np.zeros(1), np.ones(1)
    for look in range(1, looks + 1):
        reach = bound * math.sqrt(look)
        reached = reach * nodes
        density = np.exp(-((reached[:, None] - sums) ** 2) / 2) / math.sqrt(2 * math.pi)
        sums, mass = reached, reach * weights * (density @ mass)
    return min(max(p, 1 - float(mass.sum())), looks * p, 1.0)


def level_of_look(level: float, looks: int) -> float:
    """Return the level of each look's interval, at which those of all looks hold the truth together with ``level``."""
    low, high = (1 - level) / looks, 1 - level
    for _ in range(_HALVINGS if looks > 1 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if overall_p(middle, looks) < 1 - level else (low, middle)
    return 1 - high
