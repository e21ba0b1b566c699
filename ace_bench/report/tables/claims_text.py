"""The claims table as text, and as lines of CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ace_bench.report.conditions import Variant
from ace_bench.report.tables.cells import FEW_SEEDS
from ace_bench.report.tables.claim_result import ClaimResult
from ace_bench.report.tables.grids import NOT_KNOWN, Grid, p_value, seeds_text

_HEADER = (
    "claim",
    "of",
    "section",
    "paper",
    "ours",
    "interval",
    "family",
    "p",
    "seeds",
    "collapsed",
    "verdict",
    "notes",
)


def claims_grid(results: Sequence[ClaimResult], *, numbers: bool) -> Grid:
    """One row a claim; ``numbers``: with the paper's."""
    rows = [tuple(word for name, word in _words(result).items() if numbers or name != "paper") for result in results]
    header = tuple(name for name in _HEADER if numbers or name != "paper")
    return Grid(title="Claims", header=header, rows=tuple(rows))


def claims_records(results: Sequence[ClaimResult], variant: Variant, *, numbers: bool) -> list[dict[str, object]]:
    """One line a claim, with numbers in full precision; unknown values are empty."""
    return [_record(result, variant, numbers=numbers) for result in results]


def claims_notes(results: Sequence[ClaimResult], *, simulated: bool) -> list[str]:
    """Notes below the table."""
    family = sum(result.claim.primary for result in results)
    return [
        "Differences of scores are in points, paired by sample and, where both sides have the same seeds, by seed. "
        "Averages over test sets weigh the sets as the paper does; scenarios stay together. Costs and shares are in "
        "percent, with a t interval over seeds of the logarithm of the ratio.",
        f"Primary: the {family} claims that were chosen before any run; their intervals have the levels of Holm's "
        "method: at most about one of 20 such families has a false one. Exploratory: all others, each alone at 95%; of "
        "20 such claims without an effect one may look like one.",
        "Supported: the interval lies above 0. Contradicted: it ends below half of the paper's number. Equivalent (the "
        "paper says that a change does not matter): it lies within the margin in the notes (two one-sided tests); "
        "contradicted if outside. Else inconclusive. These playbooks only: a side that adapts has fewer than "
        f"{FEW_SEEDS} seeds, so the interval says nothing of the method. Refused: seeds collapsed (a step left half or "
        "less of a context), so that no interval over seeds holds; the rate has an exact 95% interval, and an "
        "interval without a collapse is about runs that do not collapse.",
        *(["Rehearsed: a stand-in answered, so the verdicts say nothing about the paper."] if simulated else []),
    ]


def _words(result: ClaimResult) -> Mapping[str, str]:
    tested, claim, collapses = result.comparison, result.claim, result.collapses
    family = "primary" if claim.primary else "exploratory"
    return {
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        "paper": _signed(claim.value, claim.unit),
        "ours": _signed(result.value, claim.unit) + "†" * bool(result.deviations and result.value is not None),
        "interval": _bounds(result),
        "family": f"{family}, {100 * result.level:.4g}%",
        "p": "-" if tested is None else p_value(tested.p),
        "seeds": seeds_text(result.seeds),
        "collapsed": f"{collapses.count} of {collapses.runs}" if collapses.runs else "-",
        "verdict": result.verdict,
        "notes": "; ".join(_remarks(result)) or "-",
    }


def _bounds(result: ClaimResult) -> str:
    bounds = result.interval
    if bounds is None or result.refused:
        return "-"
    return "all seeds equal" if result.equal else f"[{bounds.low:+.1f}, {bounds.high:+.1f}]"


def _remarks(result: ClaimResult) -> list[str]:
    found = [result.state] if result.state else []
    bounds, claim = result.interval, result.claim
    if claim.within is not None:
        found.append(f"margin {claim.within:g} points")
    if result.collapses.count:
        rate = result.collapses.rate
        found.append(f"rate of collapse {rate.low:.0f} to {rate.high:.0f}%")
    elif bounds is not None and claim.within is None and not result.equal:
        inside = bounds.low <= claim.value <= bounds.high
        found.append(f"the paper's size is {'within' if inside else 'outside'} our interval")
    if result.verdict == "contradicted" and bounds is not None and bounds.low > 0 and claim.within is None:
        found.append("there is an effect, but a smaller one")
    if result.deviations and result.value is not None:
        found.append(f"not the paper's setting: {', '.join(result.deviations)}")
    return found


def _record(result: ClaimResult, variant: Variant, *, numbers: bool) -> dict[str, object]:
    tested, claim, collapses = result.comparison, result.claim, result.collapses
    bounds = None if result.refused else result.interval
    found: dict[str, object] = {
        "table": "claims",
        "conditions": " ".join(variant.overrides),
        "simulated": variant.simulated,
        "source": variant.source,
        "model": claim.model,
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        "unit": claim.unit,
        "value": result.value,
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "level": result.level,
        "family": "primary" if claim.primary else "exploratory",
        "margin": claim.within,
        "n": tested.n if tested else None,
        "seeds": " ".join(map(str, result.seeds)),
        "p": tested.p if tested else None,
        "p_over_seeds": tested.seeds_p if tested else None,
        "test": tested.test if tested else None,
        "collapsed": collapses.count,
        "adapted_runs": collapses.runs,
        "verdict": result.verdict,
        "not_the_papers_setting": "; ".join(result.deviations),
        "notes": "; ".join(_remarks(result)),
    }
    return found | ({"paper": claim.value} if numbers else {})


def _signed(value: float | None, unit: str) -> str:
    return NOT_KNOWN if value is None else f"{value:+.1f}" + "%" * (unit == "percent")
