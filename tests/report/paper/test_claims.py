"""The paper's claims computed from runs: differences, intervals, corrected p-values and verdicts."""

import pytest

from ace_bench.report.conditions import Variant
from ace_bench.report.paper.claims import paper_claims
from ace_bench.report.statistics import Interval
from ace_bench.report.tables.claim_result import ClaimResult, claim_record
from tests.report.paper.test_tables import SHARED


def test_every_claim_follows_from_the_papers_own_numbers():
    paper = SHARED.experiments
    for claim in paper_claims(paper):
        if claim.run:  # a share that the runs themselves have
            continue
        refs = {ref for part in claim.differences for ref in (*part.cells, part.relative_to) if ref}
        numbers = {ref: paper.cell(ref).value for ref in refs}
        computed = sum(part.value(numbers) for part in claim.differences) / len(claim.differences)
        assert computed == pytest.approx(claim.value, abs=0.1), claim.than


CLAIMS = {claim.than: claim for claim in paper_claims(SHARED.experiments)}
GAIN, STABLE = CLAIMS["ACE offline against GEPA"], CLAIMS["10K tokens equal 100K"]


@pytest.mark.parametrize(
    ("claim", "low", "high", "verdict"),
    [
        (GAIN, 0.1, 30.0, "supported"),
        (GAIN, -0.1, 30.0, "inconclusive"),
        (GAIN, -0.1, 0.49 * GAIN.value, "contradicted"),
        (GAIN, 0.1, 0.49 * GAIN.value, "contradicted"),
        (GAIN, 0.1, 0.51 * GAIN.value, "supported"),
        (STABLE, -4.9, 4.9, "equivalent"),
        (STABLE, -5.1, 4.9, "inconclusive"),
        (STABLE, -4.9, 5.1, "inconclusive"),
        (STABLE, 5.1, 9.0, "contradicted"),
        (STABLE, -9.0, -5.1, "contradicted"),
    ],
)
def test_a_verdict_follows_from_the_interval_alone(claim, low, high, verdict):
    found = ClaimResult(claim=claim, value=(low + high) / 2, interval=Interval(low=low, high=high))
    assert found.verdict == verdict
    notes = str(claim_record(found, Variant(backbone="x", name="x", overrides=()), numbers=False)["notes"])
    assert ("there is an effect, but a smaller one" in notes) is (
        claim is GAIN and verdict == "contradicted" and low > 0
    )
