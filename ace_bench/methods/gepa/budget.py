"""How much GEPA may spend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MetricBudget:
    """One of the three is set: DSPy's name for a budget, metric calls, or passes over both splits."""

    auto: str | None
    max_metric_calls: int | None
    max_full_evals: int | None
