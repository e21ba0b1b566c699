"""Runs side by side in one process: each ends as it does alone, and none leaves a trace in the process."""

import logging
import os
import signal
import sys
import threading
import warnings
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.runners import run as experiment
from ace_bench.runners import workers
from ace_bench.runners.board import Board, short_names
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import compose_run
from ace_bench.runners.schedule import Schedule
from ace_bench.runners.shared_limits import NO_PART, SharedLimits
from ace_bench.runners.workers import Workers, make_share
from ace_bench.store.lines import read_lines
from ace_bench.store.processes import FILE as PROCESSES
from ace_bench.store.processes import parse_process
from tests.backbones.serving import over_http, running
from tests.launching import Ran, launch

SMALL = ("task.source=sample", "embedder=hashing", "limit=2")
RUNS = (("task=finer", "method=base"), ("task=formula", "method=ace", "mode.epochs=1", "concurrency=1"))
OTHERS = (
    ("task=finer", "method=ace", "mode.epochs=1", "labels=none"),
    ("task=formula", "method=dc", "mode=online"),
    ("task=finer", "method=mipro", "method.auto=light"),
    ("task=formula", "method=mipro", "method.auto=light", "seed=1"),
    ("task=formula", "method=gepa", "method.auto=null", "method.max_metric_calls=20"),
    ("task=finer", "method=gepa", "method.auto=null", "method.max_metric_calls=20", "seed=1"),
)


@pytest.fixture
def served():
    """The settings of runs whose model is the reader at an address."""
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.002)) as server:
        yield (*SMALL, *over_http(server.address))


def made(runs, **how):
    """Make runs side by side; return their outcomes in the order of the runs."""
    outcomes = {}
    makers = Workers(len(runs), **how)
    board = Board(Console(file=StringIO()), len(runs), short_names(runs))
    schedule = Schedule(jobs=range(len(runs)), overrides=lambda jobs: {job: runs[job] for job in jobs})
    makers.make(schedule, lambda batch, outcome: outcomes.update({batch.jobs[0]: outcome}), board)
    return [outcomes[job] for job in range(len(runs))]


def state():
    """What runs of one process share and must not change."""
    root = logging.getLogger()
    return (
        dict(os.environ),
        os.getcwd(),
        {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
        (root.level, root.handlers[:], sys.stdout, sys.stderr, warnings.filters[:]),
        repr(np.random.get_state()),
        sorted(thread.name for thread in threading.enumerate() if not thread.daemon),
    )


@pytest.mark.parametrize(
    "runs", [pytest.param(RUNS, id="few"), pytest.param(OTHERS, id="others", marks=pytest.mark.slow)]
)
def test_runs_side_by_side_end_as_each_does_alone(runs, served, tmp_path):
    runs = [(*words, *served) for words in runs]
    apart = [launch(tmp_path / "alone", *words) for words in runs]
    before = state()
    outcomes = made([(*words, f"results={tmp_path / 'beside'}") for words in runs])
    assert state() == before
    for alone, outcome in zip(apart, outcomes, strict=True):
        assert outcome.end.status == 0, outcome.output
        beside = Ran(status=0, folder=outcome.end.folders[0])
        assert outcome.output.splitlines()[-1] == str(beside.folder)
        assert beside.lasting() == alone.lasting()
        assert {call["id"] for call in beside.lines("calls")} == {call["id"] for call in alone.lines("calls")}


def test_a_run_that_crashes_is_one_failed_row(served, tmp_path, monkeypatch):
    def crashing(found):
        if found.seed == 7:
            raise ZeroDivisionError("of the program")
        return assemble(found)

    monkeypatch.setattr(experiment, "build_run", crashing)
    runs = [("task=formula", "method=base", f"seed={seed}", *served, f"results={tmp_path}") for seed in (7, 8)]
    crashed, other = made(runs)
    assert (crashed.end.status, other.end.status) == (1, 0)
    assert crashed.output.splitlines()[-1].endswith("ZeroDivisionError: of the program")
    assert "Error" not in other.output


def test_runs_share_the_slots_for_calls(served, tmp_path):
    """The most calls in flight are those of the limit, over all runs together."""
    limits = SharedLimits()
    runs = [("task=finer", "method=base", f"seed={seed}", *served, f"results={tmp_path}") for seed in range(3)]
    outcomes = made([(*words, "max_calls_in_flight=2", "limit=8") for words in runs], limits=limits)
    assert [outcome.end.status for outcome in outcomes] == [0, 0, 0]
    assert limits.slots(2).peak == 2


def test_a_share_of_a_sweep_is_made_from_what_was_composed_elsewhere(served, tmp_path, monkeypatch):
    runs = [("task=formula", "method=base", f"seed={seed}", *served, f"results={tmp_path}") for seed in (0, 1)]
    configs = [compose_run(words) for words in runs]
    monkeypatch.setattr(workers, "compose_run", None)
    ends = make_share(runs, configs, NO_PART, "ace-bench run -m seed=0,1")
    assert [(end.status, end.metrics["seed"]) for end in ends] == [(0, 0), (0, 1)]
    processes = [read_lines(end.folders[0] / PROCESSES, parse_process).entries[0] for end in ends]
    assert [process.sweep for process in processes] == ["ace-bench run -m seed=0,1"] * 2
