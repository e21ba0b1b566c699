"""The parts of the variance of a score: orders of samples, draws of replies, and items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from math import sqrt
from typing import NamedTuple

import numpy as np

from ace_bench.core.errors import ConfigError
from ace_bench.core.statistics import Array
from ace_validity.planning import Make, PlannedRun, Request, Row, Study, find_run, scores_of

_TAIL = 0.025


class Variance(Study):
    """Parts of the variance of a score: order of samples (seed=), sampling of replies (--samplings), and items"""

    columns = ("source", "sd of a run's score", "95% interval", "share of variance", "degrees of freedom")
    note = (
        "Orders, samplings and items are crossed. Components are random effects by mean squares, in points of "
        "the score of a run on these items; intervals are Satterthwaite's. One estimated below 0 prints as 0."
    )

    def __init__(self, request: Request) -> None:
        draws, name = request.options["samplings"], request.words["name"]
        sampling = find_run(request.having(request.seeds[0])).config.settings["backbone"].get("sampling") or {}
        if draws > 1 and not sampling.get("temperature", 0):
            raise ConfigError("replies are not sampled: set backbone.sampling.temperature above 0, or --samplings 1")
        # The seed of sampling does not name a run, so each draw has a folder of its own.
        apart = [{"backbone.sampling.seed": str(draw), "name": f"{name}_sampling{draw}"} for draw in range(1, draws)]
        self._orders = [
            [PlannedRun(words=request.having(seed, **changes)) for changes in ({}, *apart)] for seed in request.seeds
        ]
        self.runs = [*chain.from_iterable(self._orders)]

    def rows(self, make: Make) -> Iterator[Row]:
        """Estimate the components of variance."""
        points = [[next(iter(scores_of([run], make).values())) for run in order] for order in self._orders]
        names = sorted(points[0][0])
        scores = np.array([[[100 * one[name].score for name in names] for one in order] for order in points])
        found = components(scores, ("order", "sampling", "items"))
        total = sum(max(0.0, one.variance) for one in found)
        for one in found:
            sd = sqrt(max(0.0, one.variance))
            yield one.name, round(sd, 2), sd_bounds(sd, one.df), f"{sd**2 / (total or 1):.0%}", round(one.df, 1)


class Component(NamedTuple):
    """A part of the variance of a run's mean score, with the degrees of freedom of its estimate."""

    name: str
    variance: float
    df: float


def components(scores: Array, factors: Sequence[str]) -> list[Component]:
    """Return the variance components of crossed random effects without repetition; the last axis are items.

    A factor of one level has no component. Each is an alternating sum of the mean squares of the effects that hold it;
    those that involve items count for a mean over them.
    """
    axes = [axis for axis, size in enumerate(scores.shape) if size > 1]
    effects = [*chain.from_iterable(combinations(axes, count) for count in range(1, len(axes) + 1))]
    squares = {effect: _mean_square(scores, effect) for effect in effects}
    last, found = scores.ndim - 1, list[Component]()
    for effect in effects:
        others = np.prod([size for axis, size in enumerate(scores.shape) if axis not in effect])
        terms = [
            ((-1) ** (len(held) - len(effect)) * squares[held] / others, _freedom(scores, held))
            for held in effects
            if set(effect) <= set(held)
        ]
        variance = sum(term for term, _ in terms)
        spread = sum(term**2 / freedom for term, freedom in terms)
        name = " x ".join(factors[axis] for axis in effect)
        divisor = scores.shape[last] if last in effect else 1
        found.append(Component(name, float(variance) / divisor, float(variance**2 / spread) if spread else 0.0))
    return found


def _freedom(scores: Array, effect: Sequence[int]) -> int:
    return int(np.prod([scores.shape[axis] - 1 for axis in effect]))


def _mean_square(scores: Array, effect: Sequence[int]) -> float:
    """Return the mean square of an effect: of the means over the other axes, less all lower effects."""
    others = tuple(axis for axis in range(scores.ndim) if axis not in effect)
    left = scores.mean(axis=others, keepdims=True)
    for axis in effect:
        left = left - left.mean(axis=axis, keepdims=True)
    weight = np.prod([scores.shape[axis] for axis in others])
    return float((left**2).sum() * weight / _freedom(scores, effect))


def sd_bounds(sd: float, df: float) -> str | None:
    """Format the 95% interval of a standard deviation; ``None`` for 0 or under one degree of freedom."""
    from scipy.special import chdtri

    if not sd or df < 1:
        return None
    return "{:.1f} to {:.1f}".format(*(sd * sqrt(df / chdtri(df, tail)) for tail in (_TAIL, 1 - _TAIL)))
