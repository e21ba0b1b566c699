"""The claims table as text, and as lines of CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ace_bench.report.conditions import Variant
from ace_bench.report.tables.claims import ClaimResult
from ace_bench.report.tables.grids import NOT_KNOWN, Grid, number, p_value, seeds_text

_HEADER = (
    "claim",
    "of",
    "section",
    "paper",
    "ours",
    "95% interval",
    "p (Holm)",
    "detectable",
    "seeds",
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
    family = sum(result.comparison is not None for result in results)
    return [
        "Differences of scores are in points and paired by sample, and by seed where both sides have the same seeds. "
        "Averages over test sets weigh the sets as the paper does; scenarios stay together. P-values are corrected by "
        f"Holm's method for the {family} claims about scores that have runs. Costs are in percent, without a test; "
        "their brackets are the smallest and largest value over seeds.",
        "Supported: the gain is significant at 5% after the correction; costs: saved in each of at least three seeds. "
        "Not supported: it is not, although a gain of the paper's size would have been found (power 80%), or there is "
        "a loss. Not enough runs: neither. One seed is about this playbook, not about the method.",
        "A verdict is about the sign of a gain; whether its size is the paper's is in the notes.",
        *(["Rehearsed: a stand-in answered, so the verdicts say nothing about the paper."] if simulated else []),
    ]


def _words(result: ClaimResult) -> Mapping[str, str]:
    tested, claim = result.comparison, result.claim
    bounds = tested.interval if tested else result.interval
    detectable = tested.detectable if tested else None
    return {
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        "paper": _signed(claim.value, claim.unit),
        "ours": _signed(result.value, claim.unit) + "†" * bool(result.deviations and result.value is not None),
        "interval": "-" if bounds is None else f"[{bounds.low:+.1f}, {bounds.high:+.1f}]",
        "p": "-" if result.p_holm is None else p_value(result.p_holm),
        "detectable": "-" if detectable is None else number(detectable, "points"),
        "seeds": seeds_text(result.seeds),
        "verdict": result.verdict,
        "notes": "; ".join(_remarks(result)) or "-",
    }


def _remarks(result: ClaimResult) -> list[str]:
    found = [result.state] if result.state else []
    if result.value is not None and result.scope:
        found.append(result.scope)
    bounds = result.comparison.interval if result.comparison else None
    if bounds is not None:
        inside = bounds.low <= result.claim.value <= bounds.high
        found.append(f"the paper's size is {'within' if inside else 'outside'} our interval")
    if result.deviations and result.value is not None:
        found.append(f"not the paper's setting: {', '.join(result.deviations)}")
    return found


def _record(result: ClaimResult, variant: Variant, *, numbers: bool) -> dict[str, object]:
    tested, claim = result.comparison, result.claim
    bounds = tested.interval if tested else result.interval
    found: dict[str, object] = {
        "table": "claims",
        "conditions": " ".join(variant.overrides),
        "simulated": variant.simulated,
        "source": variant.source,
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        "unit": claim.unit,
        "value": result.value,
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "n": tested.n if tested else None,
        "seeds": " ".join(map(str, result.seeds)),
        "p_holm": result.p_holm,
        "p": tested.p if tested else None,
        "p_over_seeds": tested.seeds_p if tested else None,
        "test": tested.test if tested else None,
        "detectable": tested.detectable if tested else None,
        "verdict": result.verdict,
        "scope": result.scope,
        "not_the_papers_setting": "; ".join(result.deviations),
        "notes": "; ".join(_remarks(result)),
    }
    return found | ({"paper": claim.value} if numbers else {})


def _signed(value: float | None, unit: str) -> str:
    return NOT_KNOWN if value is None else f"{value:+.1f}" + "%" * (unit == "percent")
