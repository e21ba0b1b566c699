"""The paper's claims computed from runs: differences, intervals, corrected p-values and verdicts."""

import random

import pandas as pd
import pytest

from ace_bench.report.statistics import Interval
from ace_report.conditions import Variant
from ace_report.paper.claims import paper_claims
from ace_report.tables.claim_result import ClaimResult, claim_record
from ace_report.tables.results_index import Wanted
from ace_report.tables.write import write_tables
from tests.packages.report.planned import Planner
from tests.packages.report.test_tables import REAL, SHARED, planned, results_index


def claims(results, **shown):
    files = write_tables(results_index(results), results / "tables", Wanted(names=("claims",), **shown))
    (table,) = [pd.read_csv(file, dtype={"seeds": str}) for file in files if file.suffix == ".csv"]
    assert {file.suffix for file in files} == {".md", ".tex", ".csv"}
    return table.set_index("of"), (results / "tables" / "tables.md").read_text()


def scores(share, n, seed):
    rng = random.Random(seed)
    return [float(rng.random() < share) for _ in range(n)]


def test_every_claim_follows_from_the_papers_own_numbers():
    paper = SHARED.experiments
    for claim in paper_claims(paper):
        if claim.run:  # a share that the runs themselves have
            continue
        refs = {ref for part in claim.differences for ref in (*part.cells, part.relative_to) if ref}
        numbers = {ref: paper.cell(ref).value for ref in refs}
        computed = sum(part.value(numbers) for part in claim.differences) / len(claim.differences)
        assert computed == pytest.approx(claim.value, abs=0.1), claim.than


def test_a_claim_over_two_tasks_is_tested_as_one_and_its_verdict_needs_runs(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    shares = {"ace_offline_gt": 0.8, "gepa": 0.5, "icl": 0.78}
    means = {}
    for row, share in shares.items():
        for column, n in (("finer", 90), ("formula", 30)):
            for seed in (0, 1, 2):
                made = scores(share, n, f"{row}{column}{seed}")
                planner.make(planned(f"2/{row}/{column}"), made, extra=REAL, seed=seed, sizes=[1])
                means[row, column, seed] = 100 * sum(made) / n
    table, text = claims(tmp_path)
    gain = sum(
        (means["ace_offline_gt", column, seed] - means["gepa", column, seed]) / 6
        for column in ("finer", "formula")
        for seed in (0, 1, 2)
    )
    finance = table[table.claim == "Finance"]
    gepa, icl, mipro = (finance.loc[f"ACE offline against {other}"] for other in ("GEPA", "ICL", "MIPROv2"))
    assert gepa.value == pytest.approx(gain)
    assert 0 < gepa.low < gain < gepa.high
    assert (gepa.verdict, gepa.paper, gepa.seeds, gepa.family) == ("supported", 9.4, "0 1 2", "exploratory")
    assert icl.low < 0 < icl.high < icl.paper / 2
    assert icl.verdict == "contradicted"
    assert (mipro.verdict, pd.isna(mipro.value)) == ("not measured", True)
    assert "cells without a finished run in the rows 2/mipro |" in text


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
