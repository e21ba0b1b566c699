"""Runs that were stopped: what they have done so far, beside a base, and the command that continues them."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from ace_bench.cli.main import start
from ace_bench.report.experiments import load_experiments
from ace_bench.report.folders import run_folders
from ace_bench.report.progress import Tail
from ace_bench.report.records import find_runs, read_run
from ace_bench.report.tables.unfinished import Planned, command_continuing, continuing
from ace_bench.report.unfinished import beside_base, so_far
from ace_bench.store.folder import LOCK

SMALL = ("task=finer", "task.source=sample", "limit=6", "mode.epochs=1")
ONLINE = (*SMALL[:3], "mode=online")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A base, and runs that a budget stopped: online, while learning from training samples, and in the test."""
    folder = tmp_path_factory.mktemp("results")
    for settings in (
        (*SMALL, "method=base"),
        (*ONLINE, "budget.calls=16"),
        (*SMALL, "budget.calls=9"),
        (*SMALL, "seed=1", "mode.before=false", "budget.calls=26", "method.max_reflection_rounds=1"),
        (*SMALL, "method=base", "seed=1", "budget.calls=2"),
    ):
        start("run", [*settings, f"results={folder}"])
    return folder


def chosen(results, **wanted):
    (run,) = [
        run for run in find_runs(results).runs if all(getattr(run, name) == value for name, value in wanted.items())
    ]
    return run


def test_first_attempts_online_are_compared_with_the_base_on_the_same_samples(results):
    run, base = chosen(results, method="ace", mode="online"), chosen(results, method="base", seed=0)
    done = so_far(run)
    assert (run.state, done.split, done.samples, done.planned) == ("stopped", "test", 6, 6)
    assert 0 < done.learnt <= len(done.points) < 6
    beside = beside_base(run, done, [base])
    on_these = [base.points("accuracy")[sample].score for sample in done.points]
    assert beside.base == pytest.approx(100 * fmean(on_these))
    assert beside.comparison.n == len(done.points)
    assert beside.comparison.difference == pytest.approx(done.score - beside.base)


def test_a_stopped_run_has_the_command_that_continues_it(results):
    run, base = chosen(results, method="ace", mode="online"), chosen(results, method="base", seed=0)
    assert {*ONLINE, "budget.calls=16"} <= {*shlex.split(command_continuing(run))}
    assert command_continuing(base) == command_continuing(replace(run, older=True)) == ""


def test_attempts_at_training_samples_have_no_base(results):
    run, base = chosen(results, method="ace", mode="offline", seed=0), chosen(results, method="base", seed=0)
    done = so_far(run)
    assert (done.split, done.planned) == ("train", 6)
    assert 0 < len(done.points) < 6
    assert beside_base(run, done, [base]) is None


def test_the_test_counts_once_adaptation_has_ended(results):
    done = so_far(chosen(results, method="ace", mode="offline", seed=1))
    assert (done.split, done.learnt, done.planned) == ("test", 6, 6)
    assert 0 < len(done.points) < 6
    base = so_far(chosen(results, method="base", seed=1))
    assert (base.split, base.steps, base.planned, len(base.points)) == ("test", 0, 0, 2)


def test_a_table_shows_them_apart_and_names_the_commands_that_began_them(results, capsys):
    assert start("tables", [f"results={results}", "--rows", "method,mode", "--over", "nothing"]) == 0
    said = capsys.readouterr().out
    apart = said.partition("### Not finished")[2]
    assert apart.count("| stopped: ") == 4
    commands = apart.partition("```\n")[2].partition("\n```")[0].splitlines()
    assert len(commands) == 4
    for command in commands:
        assert "budget.calls=" in command
        assert f"results={results}" in shlex.split(command)


@pytest.mark.parametrize("folder", ["/seed0", "/copies/seed0"])
def test_a_run_without_its_results_folder_keeps_its_command(folder, results):
    run = chosen(results, method="ace", mode="online")
    moved = replace(run, folder=Path(folder))
    vars(moved)["processes"] = run.processes
    continued = continuing("", [Planned(plan=None, seed=0, run=moved)], ())
    assert continued.commands == (run.processes[-1].command,)


@pytest.mark.parametrize("text", ["ace-bench '; touch x; #' a=1", "ace-bench run 'a", "ace-bench", "touch x", ""])
def test_a_table_names_no_command_that_the_program_did_not_record(text, results, monkeypatch):
    run = chosen(results, method="ace", mode="online")
    process = replace(run.processes[-1], command=text, sweep=text)
    monkeypatch.setitem(vars(run), "processes", [process])
    assert run.sweep == ""
    assert continuing("", [Planned(plan=None, seed=0, run=run)], ()) is None


def test_a_recorded_sweep_may_hold_any_text_as_seeds(results, monkeypatch):
    run = chosen(results, method="ace", mode="online")
    sweep = f"ace-bench reproduce table=2 seed={'1' * 5000},x"
    monkeypatch.setitem(vars(run), "processes", [replace(run.processes[-1], sweep=sweep)])
    experiments = load_experiments()
    missing = Planned(plan=experiments.runs("2")[0], seed=0, run=None, command="ace-bench run task=finer")
    continued = continuing("2", [missing], [run], experiments)
    assert continued is not None
    assert continued.commands == ("ace-bench run task=finer",)


def test_ls_says_how_far_they_are(results, capsys):
    assert start("ls", [str(results), "--state", "stopped", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["stage"] for row in rows} == {"adapt", "evaluate"}
    assert all(row["score_so_far"] is not None for row in rows)


def test_a_killed_process_leaves_a_stopped_run(results):
    folder = chosen(results, method="ace", mode="online").folder
    status = folder / "status.json"
    before = status.read_text()
    status.write_text('{"state": "running"}')
    assert (folder / LOCK).exists()
    try:
        assert read_run(folder).state == "stopped"
    finally:
        status.write_text(before)


@pytest.mark.slow
def test_the_command_that_a_table_names_completes_a_stopped_reproduction(tmp_path, capsys):
    settings = ("table=2", "backbone=embedded", "limit=4", "ace:method.max_reflection_rounds=1", "ace:mode.epochs=1")
    asked = [*settings, f"results={tmp_path}"]
    assert start("reproduce", [*asked, "budget.calls=12", "estimate=false"]) == 1
    calls = {folder: len(Tail(folder / "calls.jsonl", dict).read()) for folder in run_folders(tmp_path)}
    capsys.readouterr()
    assert start("tables", ["table=2", f"results={tmp_path}"]) == 0
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Table 2: ")]
    command = shlex.split(said[said.index("ace-bench reproduce") :])
    assert command[2:] == [*asked, "budget.calls=12", "estimate=false"]
    assert start("reproduce", [word for word in command[2:] if not word.startswith("budget.")]) == 0
    runs = find_runs(tmp_path).runs
    assert calls.keys() == {run.folder for run in runs}, "the same folders go on"
    assert all(run.finished for run in runs)
    for folder, made in calls.items():
        lines = Tail(folder / "calls.jsonl", dict).read()
        assert len(lines) >= made
        assert len({line["id"] for line in lines}) == len(lines)
