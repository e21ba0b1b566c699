"""The experiment that lists methods: what is left out and why, its tables, and its figure."""

import csv
import io
import json
from pathlib import Path

import pytest

from ace_bench.cli.reproducing.checking import refused
from ace_bench.cli.reproducing.request import jobs, read_request
from ace_bench.core.errors import ConfigError
from ace_bench.report.figures.field import draw_fields
from ace_bench.report.narrowing import narrowed
from ace_bench.report.statistics import Point as SamplePoint
from ace_bench.report.tables.cells import Measured, Place
from ace_bench.report.tables.field import Member, with_certainty
from ace_bench.report.tables.formats import Page
from ace_bench.report.tables.grids import Grid
from ace_bench.report.tables.latex import latex
from ace_bench.report.tables.paper_tables import paper_table
from ace_bench.report.tables.results_index import ResultsIndex, Wanted
from ace_bench.report.tables.write import write_tables
from ace_bench.runners.checking import RunChecks
from tests.report.paper.conftest import EXPERIMENTS, compose
from tests.report.paper.planned import Planner
from tests.report.paper.reading import read_reports

EMBEDDED = ("backbone=embedded", "task.source=sample")
METHODS, TASKS = ("icl", "dc"), ("finer", "formula")
CHOSEN = {"methods": METHODS, "tasks": TASKS, "feedback": ("none", "gold"), "passes": ("stream", "once", "fit")}
FIELD, _ = narrowed(EXPERIMENTS, ["field"], CHOSEN)
WRONG, RIGHT = [1.0] * 5 + [0.0] * 25, [1.0] * 25 + [0.0] * 5


def refusal(overrides):
    """On Formula nothing learns online."""
    return "not online" if "task=formula" in overrides and "mode=online" in overrides else ""


def results_index(results, **settings):
    return ResultsIndex(results=results, compose=compose, experiments=FIELD, **settings)


def make_runs(results):
    """All runs of two methods on two tasks that are not refused, one of them failed; only Dynamic Cheatsheet gains."""
    planner = Planner(results, compose, simulated=True, source="sample")
    for planned in FIELD.runs("field"):
        if refusal(planned.overrides):
            continue
        gains = "method=dc" in planned.overrides
        folder = planner.make(planned, RIGHT if gains else WRONG, extra=EMBEDDED, sizes=[1])
        if "method=icl" in planned.overrides:
            file = folder / "metrics.json"
            metrics = json.loads(file.read_text())
            file.write_text(json.dumps(metrics | {"usd": {"adapt": None, "evaluate": None, "total": None}}))
            if "agent.scaffold=json" in planned.overrides and "task=finer" in planned.overrides:
                file.rename(folder / "environment.json")
                (folder / "status.json").write_text(json.dumps({"state": "failed", "reason": "the server is gone"}))
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("field"))


@pytest.fixture(scope="module")
def table(results):
    index = results_index(results, refusal=refusal)
    (selection,) = index.selections
    return paper_table("field", selection, refusal)


def test_the_program_itself_says_what_is_left_out(tmp_path):
    settings = ["experiment=field", "backbone=embedded", "methods=icl,ace_empty", "tasks=finer", f"results={tmp_path}"]
    request = read_request(settings, EXPERIMENTS)
    part, _ = narrowed(EXPERIMENTS, request.names, request.chosen)
    index = ResultsIndex(results=Path(), compose=compose, refusal=RunChecks(compose).refusal, experiments=part)
    wanted = jobs(request, index.experiments)
    found = refused(request, wanted, index)
    made = [job.planned.overrides for job in wanted if job not in found]
    assert [run for run in made if "method=ace_empty" in run] == [
        ("labels=gold", "method=ace_empty", "mode=offline", "task=finer", f"agent.scaffold={one}", "mode.before=false")
        for one in ("answer_alone", "json")
    ], "a method that does not adapt has one run for each scaffold"
    assert sum("method=icl" in run for run in made) == sum("method=base" in run for run in made) == 2
    with pytest.raises(ConfigError, match="the program refuses all runs asked for: "):
        refused(request, [*found], index)


def test_only_combinations_that_make_sense_are_planned_and_others_have_a_reason():
    plan = EXPERIMENTS.by_name["field"]
    assert plan.combined is not None
    rows = {name.removeprefix("reflexion_") for name in plan.rows if name.startswith("reflexion_")}
    assert rows == {
        f"{form}_stream_{labels}" for form in ("answer_alone", "json") for labels in ("none", "correctness")
    }
    assert {name.removeprefix("best_of_k_") for name in plan.rows if name.startswith("best_of_k_")} == rows, (
        "its control"
    )
    assert {line.against for line in plan.rows.values() if line.retries} == {""}, "no method that retries has a base"
    retrying = {name: row.label for name, row in plan.rows.items() if row.retries}
    planned = {name: EXPERIMENTS.run("field", name, "finer").overrides for name in retrying}
    heated = {name for name, settings in planned.items() if "sampling.generator.temperature=0.7" in settings}
    assert heated == {name for name, label in retrying.items() if label == "reflexion"}, "best_of_k is by itself"
    assert any(note.startswith("reflexion: feedback none, correctness only") for note in plan.combined.notes())
    assert {line.against for line in plan.rows.values() if line.scaffold == "json" and line.against} == {"base_json"}
    assert FIELD.run("field", "icl_answer_alone_fit_gold", "finer") == FIELD.run("2", "icl", "finer")
    cells = [EXPERIMENTS.run("field", row, column) for row, column in EXPERIMENTS.cells("field")]
    runs = [run for run in cells if "method=base" not in run.overrides]
    assert len(runs) == len(set(runs)), "each distinct run once"


def test_a_setting_of_a_column_for_one_method_is_not_in_the_runs_of_others():
    runs = {
        row: EXPERIMENTS.run("field", row, "appworld").overrides for row in ("gepa_json_fit_gold", "dc_own_stream_none")
    }
    assert runs["gepa_json_fit_gold"] == EXPERIMENTS.run("1", "gepa", "normal_tgc").overrides
    assert runs["dc_own_stream_none"] == EXPERIMENTS.run("1", "dc_online", "normal_tgc").overrides


@pytest.mark.slow
def test_tables_show_scores_tests_and_costs_and_say_what_is_missing(results, tmp_path):
    write_tables(results_index(results, refusal=refusal), tmp_path, Wanted(names=("field",)))
    tables = read_reports((tmp_path / "tables.md").read_text())
    mark = "[simulated, sample data: not comparable with published numbers]"
    title = f"Methods of the field (field): runs with embedded {mark}"
    table, costs = tables[title], tables[f"Costs: {title}"]
    assert table.cells("dc", "once", "json", "gold") == dict.fromkeys(
        ("FiNER accuracy", "Formula accuracy"), "83.3 [66.4, 92.7]‡"
    )
    assert table.cells("icl", "fit", "json", "gold") == {
        "FiNER accuracy": "failed",
        "Formula accuracy": "16.7 [7.3, 33.6]",
    }
    assert table.cells("dc", "stream", "own", "none") == {
        "FiNER accuracy": "83.3 [66.4, 92.7]",
        "Formula accuracy": "left out",
    }, "there is no base of its scaffold to compare with"
    efficiency = "Cost of a query, adaptation spread over the test samples, and the Pareto front"
    fit, once = (("FiNER accuracy", f"answer_alone, {passes}, labels gold") for passes in ("fit", "once"))
    assert table.line(efficiency, *fit, "icl") == "1,100 | 1,100 | 2,200 | n/a | 7.58 | 100%"
    assert table.line(efficiency, *once, "dc") == "1,100 | 1,100 | 2,200 | 0.02 | 37.9 | 100%"
    assert table.grids["All pairs"][0][5] == "p (Holm over 15)"
    assert table.line("All pairs", *once, "dc", "base").startswith("+66.7")
    assert table.line("All pairs", *fit, "icl", "base") == "+0.0 [-9.2, +9.2] | 1.000 | 1.000"
    for note in (
        "corrected by Holm's method for the 15 comparisons of this table, its one family",
        "Not planned: icl: feedback gold only; passes fit only (it shows reference answers); dc: passes stream, once",
        "Left out: dc stream answer_alone none (Formula accuracy); dc stream answer_alone gold (Formula accuracy);",
    ):
        assert table.noted(note), note
    unfinished = "Not finished: what these runs have done so far, which is in no number above"
    assert table.line(unfinished, "icl", "fit", "json", "gold").startswith("FiNER accuracy | 0 | failed: the server is")
    assert ["agent.scaffold=json" in line for line in table.commands] == [True], "of what is left out none is printed"
    unknown = costs.line("Costs of a run", "icl", "fit", "json", "gold", "Formula accuracy", "adapt")
    assert unknown == "30 | 30 | 30,000 | 3,000 | 0.5 | n/a | 12.5 | 35"
    (file,) = tmp_path.glob("*_costs_*.csv")
    line = next(csv.DictReader(io.StringIO(file.read_text())))
    assert [line[name] for name in ("row", "scaffold", "column", "stage", "calls", "dollars")] == [
        *("base_answer_alone", "answer_alone", "finer", "adapt", "30.0", "0.3"),
    ]


def test_the_cost_is_estimated_from_a_few_samples_before_it_is_paid(reproduce):
    status, said = reproduce("experiment=field", "tasks=finer", "methods=icl", "task.source=sample", "--estimate")
    assert status == 0, said
    assert "Estimate, 4 runs: about" in said
    assert "The most is with" in said
    assert not {"paper", "n/a"} & {*said.split()}


def test_a_long_table_is_split_for_latex():
    grid = Grid(title="Costs of a run", header=("a",), rows=tuple((str(n),) for n in range(130)))
    text = latex([Page(title="T", label="t", grids=(grid,), notes=())])
    assert text.count(r"\begin{tabular*}") == 3
    assert text.count("T, continued") == 2
    assert text.count(r"\label{tab:t-costs-2}") == 1
    assert [text.count(f"\n{n} ") for n in range(130)] == [1] * 130


def test_the_figure_has_a_panel_for_each_group_with_costs_in_tokens_where_dollars_are_unknown(table):
    figures = dict(draw_fields(table, "Field"))
    assert sorted(figures) == ["finer_answer_alone", "finer_json", "formula_answer_alone", "formula_json"]
    assert "costs are in tokens, because the dollars of some runs are unknown or zero" in (
        " ".join(figures["finer_json"].get_suptitle().split())
    )
    panels = {axis.get_title().partition("\n")[2]: axis for axis in figures["finer_answer_alone"].axes}
    assert [*panels] == [
        *("answer_alone, fit, labels gold", "answer_alone, stream, labels none"),
        *("answer_alone, stream, labels gold", "answer_alone, once, labels none", "answer_alone, once, labels gold"),
    ]
    first, *_, last = panels.values()
    points = {
        bars.get_label(): [[*map(float, one)] for one in bars[0].get_xydata().round(1)] for bars in last.containers
    }
    assert points == {"base": [[2200, 16.7]], "labels gold": [[2200, 83.3]]}, "icl is a fit, and apart"
    (front,) = [line for line in last.lines if line.get_label() == "Pareto front of the means"]
    assert front.get_xydata().round(1).tolist() == [[2200, 83.3]]
    assert (first.get_ylabel(), first.get_xlabel()) == ("Score (%)", "")
    assert (last.get_ylabel(), last.get_xlabel()) == ("Score (%)", "Cost of a query (tokens)")


def test_membership_of_the_front_is_certain_only_where_the_draws_agree():
    def member(name, scores, cost):
        points = {0: {f"s{place}": SamplePoint(score=score) for place, score in enumerate(scores)}}
        cell = Measured(place=Place(row=name, column="", unit="percent"), points=points)
        return Member(row=name, name=name, cell=cell, costs=(cost,))

    even = [1.0, 0.0] * 20
    noisy = [0.0] * 19 + [1.0] * 21
    first, second, third = with_certainty([member("a", even, 1), member("b", noisy, 2), member("c", even, 3)])
    assert first.on_front == 1.0, "nothing is cheaper"
    assert third.on_front < second.on_front
    assert 0.3 < second.on_front < 0.8
    assert with_certainty([member("a", even, None), member("b", noisy, 2)])[0].on_front is None
