"""Reproducing results: what is run, what is skipped, what a failure does, what it would cost."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from ace_bench.cli.reproducing import manifest
from ace_bench.cli.reproducing.estimating import PaperCounts
from ace_bench.cli.reproducing.reproduction import Reproduction
from ace_bench.cli.reproducing.request import Job, jobs, read_request
from ace_bench.report import evidence
from ace_bench.report.experiments import Experiments
from ace_bench.report.paper.rows import Column, Row
from ace_bench.report.paper.tables import Experiment
from ace_bench.report.records import find_runs
from ace_bench.report.tables import latex
from ace_bench.report.tables.results_index import ResultsIndex
from ace_bench.runners.workers import Workers
from ace_bench.store.lines import SEAL
from ace_bench.store.processes import read_processes
from tests.outcomes import outcomes
from tests.report.paper.conftest import EXPERIMENTS, compose
from tests.report.paper.planned import Planner

REHEARSED = ("table=4b", "backbone=embedded", "limit=2")


def finished(results):
    return sorted(run.method for run in find_runs(results).runs if run.finished)


@pytest.mark.slow
def test_what_is_missing_is_run_once_and_makes_the_table(reproduce, tmp_path):
    status, said = reproduce(*REHEARSED, "--dry-run")
    assert (status, said.count("missing ")) == (0, 2)
    assert not list(tmp_path.iterdir())
    status, said = reproduce(*REHEARSED)
    assert status == 0, said
    assert finished(tmp_path) == ["ace", "dc"]
    (table,) = tmp_path.glob("tables/table_04b_*.md")
    assert "simulated" in table.read_text()
    assert str(table) in said
    written, changed = table.read_text(), table.stat().st_mtime_ns
    status, said = reproduce(*REHEARSED)
    assert (status, said.count("\n")) == (0, 1)
    assert said.startswith("Nothing to do: all 2 runs are finished")
    assert table.stat().st_mtime_ns == changed
    for spoil in (table.unlink, lambda: table.write_text("mine")):
        spoil()
        assert "0 of 2 runs to do" in reproduce(*REHEARSED)[1]
        assert table.read_text() == written
    (journal,) = tmp_path.glob("paper/finer-dc-*/*/seed0/journal.jsonl")
    journal.touch()
    assert "0 of 2 runs to do" in reproduce(*REHEARSED)[1], "a run is not what it was"
    assert reproduce(*REHEARSED, "--dry-run")[1].count("finished  ace-bench run") == 2
    assert "ours - paper" not in table.read_text()
    assert "0 of 2 runs to do" in reproduce(*REHEARSED, "--differences")[1]
    assert "ours - paper" in table.read_text()


@pytest.mark.slow
def test_a_finished_run_whose_code_changed_is_checked_again(reproduce, one_by_one, tmp_path):
    assert reproduce(*REHEARSED)[0] == 0
    (path,) = tmp_path.glob("paper/finer-dc-*/*/seed0/processes.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["code"]["ace_bench.methods.dc"] = "another"
    unsealed = ({name: value for name, value in line.items() if name not in SEAL} for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in unsealed))
    said = reproduce(*REHEARSED, "--dry-run")[1]
    assert (said.count("finished  ace-bench run"), said.count("changed   ace-bench run")) == (1, 1)
    status, said = reproduce(*REHEARSED)
    assert status == 0, said
    assert "1 of 2 runs to do" in said
    assert [process.how for process in read_processes(path.parent)] == ["finished", "replayed"]
    assert reproduce(*REHEARSED)[1].startswith("Nothing to do: all 2 runs are finished")


@pytest.mark.slow
def test_rows_that_differ_in_models_alone_are_one_run_with_the_embedded_backbone(reproduce, one_by_one, tmp_path):
    status, said = reproduce("table=16", "backbone=embedded", "limit=2")
    assert status == 0, said
    assert finished(tmp_path) == ["ace", "base"]


@pytest.mark.slow
def test_the_whole_paper_includes_the_claims(tmp_path):
    planner = Planner(tmp_path, compose, simulated=True, source="sample")
    extra = ("backbone=embedded", "task.source=sample")
    for row in ("ace", "gepa"):
        planner.make(EXPERIMENTS.run("10", row, "accuracy"), [1.0, 0.0], extra=extra, sizes=[1])
    request = read_request(["table=all", "backbone=embedded", f"results={tmp_path}"], EXPERIMENTS, looks=5)
    index = ResultsIndex(results=tmp_path, compose=compose)
    with (tmp_path / "said").open("w") as out:
        Reproduction(request, (), index, Console(file=out, width=500, markup=False), Workers(1)).complete([])
    (claims,) = tmp_path.glob("tables/table_claims_*.md")
    assert "| ACE against GEPA on DDXPlus |" in claims.read_text()
    assert "corrected for 5 looks" in claims.read_text()
    assert claims.read_text() in (tmp_path / "tables" / "tables.md").read_text()


@pytest.mark.slow
def test_a_run_that_fails_stops_no_other_and_is_continued_by_the_next_call(reproduce, one_by_one, tmp_path):
    status, said = reproduce(*REHEARSED, "limit=3", "budget.calls=8", "estimate=false")
    assert status == 1
    assert "failed with status 3" in said
    assert "Stopped: " in said
    assert finished(tmp_path) == ["dc"]
    status, said = reproduce(*REHEARSED, "limit=3", "--only-missing")
    assert (status, finished(tmp_path)) == (0, ["dc"])
    assert "0 of 2 runs to do" in said
    said = " ".join(reproduce(*REHEARSED, "limit=3", "--dry-run")[1].split())
    assert "begun " in said
    assert "exist" not in said
    assert "1 of these exist as finished runs that differ in limit=3: given these settings" in " ".join(
        reproduce(*REHEARSED, "--dry-run")[1].split()
    )
    assert reproduce(*REHEARSED, "limit=3")[0] == 0
    assert finished(tmp_path) == ["ace", "dc"]


@pytest.mark.slow
def test_ctrl_c_stops_all_runs_cleanly(tmp_path):
    command = [sys.executable, "-m", "ace_bench", "reproduce", *REHEARSED, "limit=60", f"results={tmp_path}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while sum(path.stat().st_size > 0 for path in tmp_path.glob("**/calls.jsonl")) < len(os.sched_getaffinity(0)):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert {run.state for run in find_runs(tmp_path).runs} <= {"stopped", "finished"}


COLUMN = {"unit": "percent", "metric": "accuracy"}


def requested(results, columns, rows, *settings):
    """The jobs of an experiment of one's own, and what makes them."""
    plan = Experiment(title="own", model="deepseek_v3_1", columns=columns, rows=rows)
    index = ResultsIndex(results=results, compose=compose)
    index.__dict__["experiments"] = Experiments(by_name={"own": plan})
    words = ["experiment=own", "backbone=embedded", *settings, f"results={results}"]
    request = read_request(words, index.experiments)
    wanted = jobs(request, index.experiments)
    return wanted, Reproduction(request, wanted, index, Console(width=500, markup=False), Workers(2))


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_waits_for_the_one_it_needs(fails, one_by_one, tmp_path, capsys, monkeypatch):
    columns = {
        "adapted": Column(overrides=("task=finer",), **COLUMN),
        "evaluated": Column(overrides=("task=finer", "concurrency=2"), evaluates="adapted", **COLUMN),
    }
    rows = {"row": Row(overrides=("method=ace",), adapts="offline", label="x")}
    wanted, made = requested(tmp_path, columns, rows, "seed=0,1", "limit=2", *(["budget.calls=1"] if fails else []))
    assert len(wanted) == 4
    monkeypatch.setattr(made, "_write_results", list)  # there is no table of it
    status, said = made.complete(made.unfinished(continue_begun=True)), capsys.readouterr().out
    if fails:
        assert (status, said.count("not started: a run that it needs")) == (1, 2)
    else:
        assert status == 0, said
        contexts = [run.settings["mode"].get("context") for run in find_runs(tmp_path).runs if run.mode == "evaluate"]
        assert [f"/seed{seed}/" in context for seed, context in enumerate(sorted(contexts))] == [True, True]


def test_one_run_in_other_words_is_not_made_twice_at_the_same_time(tmp_path):
    own = {"plain": (), "default": ("method.max_reflection_rounds=5",), "other": ("method.max_reflection_rounds=4",)}
    rows = {name: Row(overrides=("method=ace", *words), adapts="offline", label=name) for name, words in own.items()}
    wanted, made = requested(tmp_path, {"score": Column(overrides=("task=finer",), **COLUMN)}, rows)
    plain, default, other = map(made._overrides_by_job(wanted).get, wanted)
    assert plain == default != other


def test_results_are_made_again_when_the_code_that_makes_them_changes():
    assert {Path(module.__file__) for module in (evidence, latex)} <= {*manifest._program()}


def test_each_table_is_made_with_the_papers_model_unless_another_is_named():
    request = read_request(["table=all", "seed=0,1"], EXPERIMENTS)
    wanted = jobs(request, EXPERIMENTS)
    assert len(set(wanted)) == len(wanted)
    backbones = {job.extra[0] for job in wanted}
    assert backbones == {f"backbone={table.model}" for table in EXPERIMENTS.tables.values() if table.model}
    places = {job: place for place, job in enumerate(wanted)}
    for job in wanted:
        for need in job.planned.needs:
            assert places[Job(planned=need.run, extra=job.extra, seed=job.seed)] < places[job]
    figure = jobs(read_request(["figure=1", "seed=0,1"], EXPERIMENTS), EXPERIMENTS)
    assert set(figure) <= set(wanted)
    embedded = jobs(read_request(["table=all", "backbone=embedded"], EXPERIMENTS), EXPERIMENTS)
    assert len(embedded) < len(wanted) / 2  # the same runs with several models are one here


MISTAKES = [
    "",
    "all",
    "table=22",
    "figure=4",
    "2",
    "table=2 seed=-1",
    "table=2 backbone=embedded --estimate",
    "table=2 method.nothing=1",
    "table=2 backbone=gpt_7",
    "table=2 'limit={2'",
    "table=16 backbone.timeout=5 backbone=embedded",
    "table=2 method.max_reflection_rounds=1",
    "table=2 gep:method.auto=light",
    "table=4b gepa:method.auto=light",
    "table=2 appworld:limit=3",
    "table=2 gepa:method.autos=light",
    "table=2 backbone=embedded gepa:method.max_full_evals=0",
    "table=16 backbone=gpt_5_1 backbone.structured=xml",
    "table=2 labels=none",
    "table=2 backbone=vllm",
    "experiment=seed_003 limit=2 backbone=embedded",
    "experiment=seed_003 ace:backbone.name=x backbone=embedded",
    "experiment=seed_004 retrieval.top_k=2 backbone=embedded",
    "table=seed_000 backbone=embedded",
    "experiment=seed_003 --estimate",
    "experiment=seed_001",
    "experiment=field tasks=finr",
    "experiment=field scaffolds=xml",
    "table=2 tasks=formla",
    "table=2 methods=mipr",
    "table=2 passes=fit",
    "table=2,10 tasks=ddxplus methods=mipro",
    "experiment=seed_004 tasks=finer",
]


def test_a_mistake_is_named_before_anything_is_run(snapshot, reproduce, tmp_path, monkeypatch):
    def answer(line):
        status, said = reproduce(*shlex.split(line))
        assert status == 2
        return said

    monkeypatch.setenv("COLUMNS", "200")
    assert outcomes(answer, MISTAKES) == snapshot
    assert not list(tmp_path.iterdir())


def number(ref):
    return EXPERIMENTS.cell(ref).value


def test_an_estimate_on_appworld_is_near_the_papers_own_counts_and_its_bound_is_not_passed():
    planned = EXPERIMENTS.run("12", "ace", "input")
    cost = PaperCounts(EXPERIMENTS).cost(planned, compose([*planned.overrides, "backbone=deepseek_v3_1"]))
    tested = 168 / number("14/ace/queries")
    calls, prompt, completion = (
        number(f"12/ace/{column}") + number(f"14/ace/{column}") * tested for column in ("calls", "input", "output")
    )
    for account, share in ((cost.typical, 0.8), (cost.high, 1)):
        assert share * calls <= account.calls <= 1.2 * calls
        assert share * prompt <= account.usage.prompt + 1 <= 1.2 * prompt
        assert share * completion <= account.usage.completion + 1 <= 1.2 * completion
