"""The paper's claims computed from runs: differences, intervals, corrected p-values and verdicts."""

import random
from pathlib import Path

import pandas as pd
import pytest

from ace_bench.core.resources import config_folders
from ace_bench.report.paper.claims import paper_claims
from ace_bench.report.statistics import Point, compare
from ace_bench.report.tables.results_index import ResultsIndex, Wanted
from ace_bench.report.tables.write import write_tables
from ace_bench.runners.planning import Composer
from tests.report.planned import Planner

REAL = ("backbone=deepseek_v3_1",)
SHARED = ResultsIndex(results=Path(), compose=Composer(config_folders()))
"""For its experiments, and for configurations that are slow to compose."""


def planned(ref):
    return SHARED.experiments.run(*ref.split("/"))


def claims(results, **shown):
    index = ResultsIndex(results=results, compose=SHARED.compose)
    files = write_tables(index, results / "tables", Wanted(names=("claims",), **shown))
    (table,) = [pd.read_csv(file, dtype={"seeds": str}) for file in files if file.suffix == ".csv"]
    assert {file.suffix for file in files} == {".md", ".tex", ".csv"}
    return table.set_index("of"), (results / "tables" / "tables.md").read_text()


def scores(share, n, seed):
    rng = random.Random(seed)
    return [float(rng.random() < share) for _ in range(n)]


def test_every_claim_follows_from_the_papers_own_numbers():
    paper = SHARED.experiments.paper
    for claim in paper_claims(paper):
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
    assert gepa.low < gain < gepa.high
    assert (gepa.verdict, gepa.paper, gepa.seeds) == ("supported", 9.4, "0 1 2")
    assert gepa.p <= gepa.p_holm < 0.05
    assert icl.p_holm > 0.05
    assert icl.verdict == ("not supported" if icl.detectable <= icl.paper else "not enough runs")
    assert (mipro.verdict, pd.isna(mipro.value)) == ("not enough runs", True)
    assert "cells without a finished run in the rows 2/mipro |" in text


def test_one_seed_speaks_of_one_playbook_and_scenarios_stay_together(tmp_path):
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
    assert (claim.scope, claim.n) == ("this playbook only", 2 * (36 + 12))
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
    assert (claim.value, claim.low, claim.high, claim.verdict) == (75.0, 75.0, 75.0, "supported")
    assert table.loc["latency saved offline against GEPA"].verdict == "not supported"
    assert pd.isna(claim.p)
    assert "paper" not in table
    assert "Rehearsed: a stand-in answered" in text
    assert "75.1%" not in text
    assert "+75.1%" in claims(tmp_path, with_paper=True)[1]
