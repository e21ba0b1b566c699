"""The verdict of our runs on a claim of the paper, which only depends on its interval, and the table of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ace_bench.core.statistics import LEVEL, exact_bounds
from ace_bench.report.conditions import Variant
from ace_bench.report.paper.claims import PaperClaim
from ace_bench.report.statistics import Comparison, Interval, judge_equivalence
from ace_bench.report.tables.cells import FEW_SEEDS
from ace_bench.report.tables.grids import (
    NOT_KNOWN,
    Grid,
    coverage_notes,
    looks_note,
    p_value,
    seeds_text,
    signed,
    signed_bounds,
)

Verdict = Literal[
    "supported", "contradicted", "equivalent", "inconclusive", "these playbooks only", "refused", "not measured"
]

SHARE = 0.5
"""A claim is contradicted if its interval ends below this share of the paper's number."""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim by our runs. ``value`` is in the claim's unit, ``None`` if a run is missing (``state``).

    ``interval`` has the confidence ``level``, together with those of all ``looks`` while runs are added. ``equal`` says
    that all seeds have the same value. A claim about scores has a ``comparison``. ``few`` says that a side that adapts
    has fewer than three seeds.

    ``collapsed`` of the ``adapted`` runs lost most of a large context in one step. Where they are all of one side they
    count as the best runs of their cells: then ``left_by_collapses`` is the verdict that holds whatever collapses cost
    that side, and ``with_collapses`` the difference as it was measured.
    """

    claim: PaperClaim
    seeds: tuple[int, ...] = ()
    value: float | None = None
    interval: Interval | None = None
    level: float = LEVEL
    looks: int = 1
    equal: bool = False
    comparison: Comparison | None = None
    few: bool = False
    collapsed: int = 0
    adapted: int = 0
    left_by_collapses: Verdict | None = None
    with_collapses: float | None = None
    state: str = ""
    deviations: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of our runs on the claim, which only depends on its interval."""
        if self.value is None:
            return "not measured"
        if self.few:
            return "these playbooks only"
        if self.refused or self.interval is None:
            return "refused" if self.refused else "inconclusive"
        found = self._found(self.interval)
        return found if self.left_by_collapses in (None, found) else "inconclusive"

    def _found(self, interval: Interval) -> Verdict:
        if self.claim.within is not None:
            return judge_equivalence(interval, self.claim.within)
        if interval.high < SHARE * self.claim.value:
            return "contradicted"
        return "supported" if interval.low > 0 else "inconclusive"

    @property
    def bounds(self) -> Interval | None:
        """The interval, if it holds."""
        return None if self.refused else self.interval

    @property
    def refused(self) -> bool:
        """Whether seeds collapsed, and no interval holds whatever that cost them."""
        alone = self.left_by_collapses is None or self.claim.within is not None
        return self.comparison is not None and self.collapsed > 0 and alone


def claims_grid(results: Sequence[ClaimResult], *, numbers: bool) -> Grid:
    """Return a row for each claim, with the paper's number if ``numbers`` says so."""
    lines = [_words(result, numbers=numbers) for result in results]
    return Grid(title="Claims", header=tuple(lines[0]), rows=tuple(tuple(line.values()) for line in lines))


def printed_claims(results: Sequence[ClaimResult], *, simulated: bool, numbers: bool) -> Grid:
    """Return the claims for LaTeX, in groups by subject, with notes on the verdicts below."""
    lines = [_words(result, numbers=numbers) for result in results]
    names = [name for name in ("section", "paper", "ours", "interval", "p", "verdict") if name in lines[0]]
    firsts = (f"{result.claim.than}{' (primary)' * result.claim.primary}" for result in results)
    rows = [(first, *(line[name] for name in names)) for first, line in zip(firsts, lines, strict=True)]
    return Grid(
        title="Claims",
        header=("Claim", *(name.capitalize() for name in names)),
        rows=tuple(rows),
        legend=(
            *claims_notes(results, simulated=simulated),
            "†: not the paper's setting.",
            "Seeds, collapses and notes of each claim are in the files .md and .csv.",
        ),
        groups=tuple(result.claim.label for result in results),
    )


def claims_notes(results: Sequence[ClaimResult], *, simulated: bool) -> list[str]:
    """Return the notes below the table."""
    family = sum(result.claim.primary for result in results)
    looks = max((result.looks for result in results), default=1)
    return [
        "Differences of scores are in points, paired by sample and, where both sides have the same seeds, by seed. "
        "Averages over test sets weigh the sets as the paper does; scenarios stay together. Costs and shares are in "
        "percent, with a t interval over seeds of the logarithm of the ratio.",
        f"Primary: the {family} claims that were chosen before any run; their intervals have the levels of Holm's "
        "method (p is uncorrected): at most about one of 20 such families has a false one. Exploratory: all others, "
        "each alone at 95%; of 20 such claims without an effect one may look like one.",
        "Supported: the interval lies above 0. Contradicted: it ends below half of the paper's number. Equivalent "
        "(the paper says that a change does not matter): its 90% interval lies within the margin in the notes (two "
        "one-sided tests at 5%); contradicted if outside. Else inconclusive. These playbooks only: a side that "
        f"adapts has fewer than {FEW_SEEDS} seeds, so the interval says nothing of the method. Collapsed: a step "
        "left half or less of a context; the rate has an exact 95% interval. Collapsed runs of one side count as "
        "the best runs of their cells, so that only the verdict which that makes harder is given. Refused: runs of "
        "both sides collapsed, a cell has fewer than two other runs, or the claim is of equality. An interval "
        "without a collapse is about runs that do not collapse.",
        looks_note(looks),
        *coverage_notes([result.comparison for result in results if result.comparison is not None and result.bounds]),
        *(["Rehearsed: a stand-in answered, so the verdicts say nothing about the paper."] if simulated else []),
    ]


def _words(result: ClaimResult, *, numbers: bool) -> Mapping[str, str]:
    tested, claim, bounds = result.comparison, result.claim, result.bounds
    return {
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        **({"paper": signed(claim.value, claim.unit)} if numbers else {}),
        "ours": signed(result.value, claim.unit, NOT_KNOWN)
        + "†" * bool(result.deviations and result.value is not None),
        "interval": "all seeds equal" if bounds and result.equal else signed_bounds(bounds).strip() or "-",
        "family": f"{claim.family}, {100 * result.level:.4g}%",
        "p": p_value(tested.p) if tested and bounds else "-",
        "seeds": seeds_text(result.seeds),
        "collapsed": f"{result.collapsed} of {result.adapted}" if result.adapted else "-",
        "verdict": result.verdict,
        "notes": "; ".join(_remarks(result)) or "-",
    }


def _remarks(result: ClaimResult) -> list[str]:
    remarks = [result.state] if result.state else []
    bounds, claim = result.interval, result.claim
    if claim.within is not None:
        remarks.append(f"margin {claim.within:g} points")
    if result.collapsed:
        low, high = exact_bounds(result.collapsed, result.adapted)
        remarks.append(f"rate of collapse {100 * low:.0f} to {100 * high:.0f}%")
        if result.with_collapses is not None and not result.refused:
            remarks.append(f"collapsed runs count as the best of their cells; measured {result.with_collapses:+.1f}")
    elif bounds is not None and claim.within is None and not result.equal:
        inside = bounds.low <= claim.value <= bounds.high
        remarks.append(f"the paper's size is {'within' if inside else 'outside'} our interval")
    if result.verdict == "contradicted" and bounds is not None and bounds.low > 0 and claim.within is None:
        remarks.append("there is an effect, but a smaller one")
    if result.deviations and result.value is not None:
        remarks.append(f"not the paper's setting: {', '.join(result.deviations)}")
    return remarks


def claim_record(result: ClaimResult, variant: Variant, *, numbers: bool) -> dict[str, object]:
    """Return a line of CSV with numbers in full precision. Unknown values are empty."""
    claim, bounds = result.claim, result.bounds
    tested = result.comparison if bounds else None
    record: dict[str, object] = {
        "table": "claims",
        **variant.about,
        "model": claim.model,
        "claim": claim.label,
        "of": claim.than,
        "section": claim.section,
        "unit": claim.unit,
        "value": result.value,
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "level": result.level,
        "family": claim.family,
        "margin": claim.within,
        "n": result.comparison.n if result.comparison else None,
        "seeds": " ".join(map(str, result.seeds)),
        "p": tested.p if tested else None,
        "p_over_seeds": tested.seeds_p if tested else None,
        "test": tested.test if tested else None,
        "collapsed": result.collapsed,
        "adapted_runs": result.adapted,
        "verdict": result.verdict,
        "not_the_papers_setting": "; ".join(result.deviations),
        "notes": "; ".join(_remarks(result)),
    }
    return record | ({"paper": claim.value} if numbers else {})
