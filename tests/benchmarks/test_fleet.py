"""Fleets simulated from calls: small ones, computed by hand."""

import json
import re

import pytest

from ace_bench.core.types import NO_USAGE, Stage
from ace_bench.report.evidence import CallCosts
from benchmarks.command import main
from benchmarks.fleet import Phase, RunPlan, plan_of, simulate, steps_of


def adapt(*chain):
    return Phase(adapts=True, chains=(chain,))


def evaluate(*seconds):
    return Phase(adapts=False, chains=tuple((one,) for one in seconds))


def run(*phases, concurrency=8):
    return RunPlan(phases=phases, concurrency=concurrency)


WORK = [run(adapt(1, 2), adapt(3), evaluate(1, 1)), run(evaluate(*[1] * 8))]
FLEETS = [  # runs, slots, and seconds until all are done
    (WORK, 1, sum(one.work for one in WORK)),
    (WORK, 64, max(one.chain for one in WORK)),
    ([run(evaluate(*[1] * 8), concurrency=2)], 64, 4),
    # At 1 s the slot goes to the adaptation's second call, although evaluations have waited longer.
    ([run(evaluate(*[1] * 4)), run(adapt(1, 1, 1))], 2, 4),
    ([run(adapt(1)), run(adapt(1, 1, 1))], 1, 4),
]


def test_work_is_shared_by_the_slots():
    assert [simulate(runs, slots) for runs, slots, _ in FLEETS] == [seconds for *_, seconds in FLEETS]
    assert [seconds for *_, seconds in FLEETS] == [16, 7, 4, 4, 4]


def call(stage, session, seconds=1.0, **more):
    return CallCosts(stage=stage, role="generator", session=session, usage=NO_USAGE, seconds=seconds, **more)


def test_the_phases_of_a_run_are_read_off_its_sessions():
    calls = [
        call(Stage.EVALUATE, "evaluate/test-1/none/0"),
        call(Stage.EVALUATE, "evaluate/test-2/none/0", 2.0),
        call(Stage.ADAPT, "adapt/epoch0/train-1/none/0"),
        call(Stage.ADAPT, "adapt/epoch0/train-1/none/1", 3.0),
        call(Stage.ADAPT, "adapt/epoch0/train-2/first/0"),
        call(Stage.ADAPT, "gepa/0", 4.0),
        call(Stage.ADAPT, "adapt/epoch0/train-2/first/1", replayed=True),
    ]
    plan = plan_of(calls, 8, steps={})
    assert plan.phases == (evaluate(1, 2), adapt(1, 3), adapt(1), adapt(4))
    assert plan_of(calls, 8, steps={}, call_seconds=0.5).chain == pytest.approx(0.5 + 1.0 + 0.5 + 0.5)


def test_steps_that_learn_nothing_follow_one_another(tmp_path):
    """Two samples are learnt from twice, one a step."""
    taken = [(0, 0, "train-1"), (1, 0, "train-2"), (2, 1, "train-1"), (3, 1, "train-2")]
    lines = [{"kind": "step", "index": index, "epoch": epoch, "samples": [one]} for index, epoch, one in taken]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    calls = [call(Stage.ADAPT, f"adapt/epoch{epoch}/{sample}/none/0") for _, epoch, sample in taken]
    assert plan_of(calls, 8, steps=steps_of(tmp_path)).phases == (adapt(1),) * 4
    assert plan_of(calls, 8, steps={}).phases == (Phase(adapts=True, chains=((1,),) * 4),)


def test_a_folder_without_finished_runs_is_named(tmp_path, capsys):
    assert main(["fleet", "--results", str(tmp_path)]) == 2
    assert "holds no finished runs: give --results DIR" in capsys.readouterr().err


@pytest.mark.slow
def test_a_fleet_is_made_and_measured_beside_its_simulation(tmp_path, capsys):
    made = ("--make", "table=10", "limit=2", "ace:mode.epochs=1")
    assert main(["fleet", "--results", str(tmp_path), "--slots", "2", "4", "--call-seconds", "0.01", *made]) == 0
    said = capsys.readouterr().out
    simulated, measured = (line.split("│")[1:] for line in said.splitlines() if line.startswith("│ 4"))
    assert (simulated[0].strip(), measured[0].strip()) == ("4", "4, measured")
    assert simulated[2:4] == measured[2:4]
    assert float(measured[4]) > 1.0
    assert re.search(r"[1-9]\d* MiB in [1-9]\d* processes", " ".join(said.split()))
    assert main(["fleet", "--results", str(tmp_path / "no"), "--make", "table=nothing"]) == 2
    assert "no runs make table nothing" in capsys.readouterr().err
