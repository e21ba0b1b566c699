"""A claim of the paper by our runs, and its verdict, which follows from its interval alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ace_bench.core.statistics import LEVEL, exact_bounds
from ace_bench.report.paper.claims import PaperClaim
from ace_bench.report.statistics import Comparison, Interval

Verdict = Literal[
    "supported", "contradicted", "equivalent", "inconclusive", "these playbooks only", "refused", "not measured"
]

SHARE = 0.5
"""A claim is contradicted if its interval ends below this share of the paper's number."""


@dataclass(frozen=True, kw_only=True)
class Collapses:
    """How many of the runs that adapt lost most of a large context in one step."""

    count: int = 0
    runs: int = 0

    @property
    def rate(self) -> Interval:
        """Exact 95% interval of the rate, in percent."""
        low, high = exact_bounds(self.count, self.runs)
        return Interval(low=100 * low, high=100 * high)


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim by our runs; ``value`` is in the claim's unit, ``None`` where a run is missing (``state``).

    ``interval`` has the confidence ``level``; ``equal`` says that all seeds have the same value. A claim about scores
    has a ``comparison``. ``few`` says that a side that adapts has fewer than three seeds.
    """

    claim: PaperClaim
    seeds: tuple[int, ...] = ()
    value: float | None = None
    interval: Interval | None = None
    level: float = LEVEL
    equal: bool = False
    comparison: Comparison | None = None
    few: bool = False
    collapses: Collapses = Collapses()
    state: str = ""
    deviations: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What our runs say of the claim, by the interval alone."""
        if self.value is None:
            return "not measured"
        if self.few:
            return "these playbooks only"
        if self.refused:
            return "refused"
        return "inconclusive" if self.interval is None else judge(self.claim, self.interval)

    @property
    def refused(self) -> bool:
        """Whether a seed collapsed, so that a t interval over seeds would not hold."""
        return self.comparison is not None and self.collapses.count > 0


def judge(claim: PaperClaim, interval: Interval) -> Verdict:
    """Return the verdict of an interval about the method."""
    low, high, margin = interval.low, interval.high, claim.within
    if margin is None:
        return "contradicted" if high < SHARE * claim.value else "supported" if low > 0 else "inconclusive"
    if -margin < low and high < margin:
        return "equivalent"
    return "contradicted" if low > margin or high < -margin else "inconclusive"
