"""Quantiles of Student's t. Our own, because importing scipy takes longer than a short run."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_PRECISION, _ITERATIONS = 1e-13, 200


@lru_cache(maxsize=1024)
def t_quantile(df: float, level: float) -> float:
    """Return the quantile of Student's t for a level of confidence; the normal one for an infinite ``df``.

    Newton's method approaches the quantile from the normal one, below
    it, because the tail is convex.
    """
    tail = (1 - level) / 2
    found = NormalDist().inv_cdf(1 - tail)
    if math.isinf(df):
        return found
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    for _ in range(_ITERATIONS):
        density = scale * (1 + found**2 / df) ** (-(df + 1) / 2)
        step = (_upper_tail(found, df, density) - tail) / density
        found += step
        if abs(step) < _PRECISION * found:
            break
    return found


def _upper_tail(t: float, df: float, density: float) -> float:
    """Return the probability above ``t`` > 0, whose ``density`` is known, by the incomplete beta function."""
    a, x = df / 2, df / (df + t**2)
    if x < (a + 1) / (a + 2.5):  # else the fraction of 1 - x converges faster
        return density * t / df * _beta_fraction(a, 0.5, x)
    return 0.5 - density * t * _beta_fraction(0.5, a, 1 - x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function from its front (DLMF 8.17.22)."""
    value = inverse = 1 / (1 - (a + b) * x / (a + 1))
    ratio = 1.0
    for m in range(1, _ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            inverse = 1 / (1 + term * inverse)
            ratio = 1 + term / ratio
            value *= inverse * ratio
        if abs(inverse * ratio - 1) < _PRECISION:
            break
    return value
