"""Rows whose runs had many replies cut at the limit of their length: they show the limit, not the method."""

from __future__ import annotations

from collections.abc import Iterable

from ace_bench.report.records import RunSummary

MOST_CUT = 0.1
"""The share of a role's replies in a stage that may be cut; with more, the row is void."""


def void_note(runs: Iterable[RunSummary]) -> str:
    """Return why a row is void, such as ``void: 34% of the curator's replies were cut``; "" where it is not."""
    shares = {
        (paid and cut / paid, role)
        for run in runs
        for stage, roles in run.metrics.get("cut_replies", {}).items()
        for role, cut in roles.items()
        for paid in (run.metrics["calls"][stage].get(role, 0),)
    }
    share, role = max(shares, default=(0.0, ""))
    return f"void: {share:.0%} of the {role}'s replies were cut" if share > MOST_CUT else ""
