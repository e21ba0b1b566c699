"""The paper's claims computed from runs: differences, intervals, corrected p-values and verdicts."""

import random

import pandas as pd
import pytest

from ace_bench.report.statistics import Interval, Point, compare
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


@pytest.mark.slow
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


def test_one_seed_speaks_of_its_playbooks_and_scenarios_stay_together(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    made = {"ace_online": scores(0.9, 36, "a"), "dc_online": scores(0.4, 36, "b")}
    for row, points in made.items():
        if row == "ace_online":
            planner.make(planned("1/ace_offline/normal_tgc"), points, extra=REAL, sizes=[1])
        for column in ("normal_tgc", "challenge_tgc"):
            planner.make(planned(f"1/{row}/{column}"), points, extra=REAL, sizes=[1] * 36)
    table, text = claims(tmp_path)
    claim = table[table.claim == "Agents"].loc["ACE online against DC"]

    def sgc(points):
        return [float(all(points[start : start + 3])) for start in range(0, 36, 3)]

    tgc_gain = sum(made["ace_online"]) / 36 - sum(made["dc_online"]) / 36
    sgc_gain = sum(sgc(made["ace_online"])) / 12 - sum(sgc(made["dc_online"])) / 12
    assert claim.value == pytest.approx(100 * (tgc_gain + sgc_gain) / 2)
    assert (claim.verdict, claim.n) == ("these playbooks only", 2 * (36 + 12))
    assert "| 1 (seed 0) |" in text


def test_a_claim_about_one_test_set_is_the_paired_test_of_its_table(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    ours, base = scores(0.8, 60, "x"), scores(0.6, 60, "y")
    for row, points in (("ace", ours), ("gepa", base)):
        planner.make(planned(f"10/{row}/accuracy"), points, extra=REAL, sizes=[1])
    claim = claims(tmp_path)[0].loc["ACE against GEPA on DDXPlus"]
    tested = compare(*({0: {str(n): Point(score=x) for n, x in enumerate(some)}} for some in (ours, base)))
    expected = (pytest.approx(tested.difference), pytest.approx(tested.p), "t over samples")
    assert (claim.value, claim.p, claim.test) == expected


@pytest.mark.slow
def test_costs_are_savings_by_seed_and_rehearsals_say_nothing_about_the_paper(tmp_path):
    planner = Planner(tmp_path, SHARED.compose, simulated=True, source="sample")
    extra = ("backbone=embedded", "task.source=sample")
    for seed in (0, 1, 2):
        planner.make(planned("4a/gepa/rollouts"), [1.0] * 8, extra=extra, seed=seed, sizes=[1])
        planner.make(planned("4a/ace/rollouts"), [1.0] * 2, extra=extra, seed=seed, sizes=[1])
    table, text = claims(tmp_path)
    claim = table.loc["rollouts saved offline against GEPA"]
    assert (claim.value, claim.verdict) == (pytest.approx(75.0), "supported")
    assert table.loc["latency saved offline against GEPA"].verdict == "contradicted"
    assert pd.isna(claim.p)
    assert "paper" not in table
    assert "Rehearsed: a stand-in answered" in text
    assert "all seeds equal" in text
    assert "75.1%" not in text
    assert "+75.1%" in claims(tmp_path, paper=True)[1]


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


def test_a_seed_that_collapses_leaves_its_claims_without_an_interval(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    for seed in (0, 1, 2):
        grown = [100, 500, 900, 1300, 90 if seed == 1 else 1200]
        planner.make(planned("10/gepa/accuracy"), scores(0.5, 60, seed), extra=REAL, seed=seed, sizes=grown)
        planner.make(planned("10/ace/accuracy"), scores(0.9, 60, 9 + seed), extra=REAL, seed=seed, sizes=[100, 40, 900])
    planner.make(planned("10/base/accuracy"), scores(0.5, 60, 5), extra=REAL)
    table, text = claims(tmp_path)
    gepa, base = (
        table[table.claim == "Medicine"].loc[f"ACE against {other} on DDXPlus"] for other in ("GEPA", "the base")
    )
    assert (gepa.verdict, gepa.collapsed, gepa.adapted_runs) == ("refused", 1, 6)
    assert pd.isna(gepa.low)
    assert pd.isna(gepa.p), "neither interval nor test"
    assert "rate of collapse 0 to 64%" in text
    write_tables(results_index(tmp_path), tmp_path / "tables", Wanted(names=("10",)))
    text = (tmp_path / "tables/tables.md").read_text()
    assert "1 of 3 seeds collapsed: no interval or test over seeds holds" in text
    shown = next(line for line in text.splitlines() if "GEPA" in line)
    assert "¶" in shown
    assert not set("[*‡") & set(shown.replace("**", "")), "neither interval nor test"
    assert "¶: seeds collapsed" in text
    assert "intervals of differences may be wider than 95% needs" in text, "three seeds against one"
    assert (base.verdict, base.collapsed, base.family) == ("supported", 0, "primary")
    assert base.seeds == "0 1 2", "those of the side that adapts"
    assert base.level == pytest.approx(1 - 0.05 / 4), "one of four claims named beforehand"


def test_claims_about_a_table_with_limits_of_its_own_and_about_other_models_stand_in_the_same_table(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    extra = {"2": REAL, "11": REAL, "8": ("backbone=gpt_5_1",)}
    for ref in ("2/ace_offline/finer", "2/base/finer", "11/ace/average", "11/base/average", "11/ace/simple",
                "8/ace_offline/finer", "8/base/finer", "2/ace_offline/formula", "2/base/formula",
                "8/ace_offline/formula", "8/base/formula"):  # fmt: skip
        run = planned(ref)
        if not planner.folder(run, extra[ref.split("/")[0]], 0).exists():
            sizes = [1] if "ace" in ref else []
            planner.make(run, scores(0.5, 30, f"{run}"), extra=extra[ref.split("/")[0]], sizes=sizes)
    table, _ = claims(tmp_path)
    ours = table[table.value.notna()]
    assert {*ours.claim} == {"Finance", "Text-to-SQL", "GPT-5.1"}
    assert "limit" not in ours.loc["ACE against the base on BIRD-SQL"].conditions
