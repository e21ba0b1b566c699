"""The table that a sweep ends with."""

import json
import sys

import pytest

from ace_bench.cli.sweep_summary import note_failure, note_run, runs_listed
from ace_bench.core.resources import config_folders
from ace_bench.report.planned import PlannedRun
from ace_bench.runners.planning import Composer
from tests.report.paper.planned import Planner


@pytest.fixture(scope="module")
def compose():
    return Composer(config_folders())


@pytest.fixture
def made(compose, tmp_path):
    """Makes the folder of a run with the scores of its samples; ``about`` changes figures in its metrics."""

    def make(*scores, overrides=(), seed=0, simulated=True, **about):
        planner = Planner(tmp_path, compose, simulated=simulated, source="sample" if simulated else "real")
        plan = PlannedRun(overrides=("task=finer", "method=ace", "mode=offline", *overrides))
        folder = planner.make(plan, scores, seed=seed)
        metrics = json.loads((folder / "metrics.json").read_text())
        for name, value in about.items():
            metrics[name] |= value
        (folder / "metrics.json").write_text(json.dumps(metrics))
        return folder

    return make


def list_runs(folders, capsys, monkeypatch, *failures):
    """Note runs, the first of them twice; return what is printed and the exit status."""
    monkeypatch.setenv("COLUMNS", "100")
    status = 0
    try:
        with runs_listed():
            for folder in (*folders[:1], *folders):
                note_run(folder)
            for words in failures:
                note_failure(words)
    except SystemExit as stop:
        status = stop.code
    lines = capsys.readouterr().out.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines), status


MORE = ("method.refiner.threshold=0.7", "method.refiner.max_tokens=1000", "mode.epochs=2", "mode.batch_size=2")


def test_a_sweep_ends_with_a_row_for_each_run(snapshot, made, capsys, monkeypatch, tmp_path):
    """The whole output of seven sweeps is that of ``sweeps.txt``."""
    monkeypatch.setattr(sys, "argv", ["run.py", "method=ace"])
    samples = [made(*scores, seed=seed) for seed, scores in enumerate(([1.0, 0.0], [1.0], [1.0, 1.0]))]
    real = made(1.0, 0.0, simulated=False, overrides=MORE[:1], headline={"ci95": [2.5, 97.5]}, usd={"total": 0.0})
    unknown = made(1.0, 1.0, seed=2, overrides=MORE[1:2], usd={"total": None}, tokens={"total": {"in": None, "out": 5}})
    (damaged := made(1.0, seed=3)).joinpath("identity.json").write_text("{")
    stopped = made(1.0, 0.0, seed=4)
    (stopped / "metrics.json").rename(stopped / "environment.json")
    (stopped / "status.json").write_text('{"state": "stopped"}')
    sweeps = {
        "the same samples stand together, failures below": (samples, ["method=ace", "seed=9"], []),
        "one run and a failed one": (samples[:1], ["seed=3"]),
        "one run alone": (samples[:1],),
        "one that failed after it had a folder": (samples[:1], []),
        "real and simulated, damaged and stopped": ([real, unknown, damaged, stopped],),
        "five settings": ([made(1.0, overrides=MORE, seed=5), made(1.0, seed=6)],),
        "six settings": ([made(1.0, overrides=(*MORE, "limit=4"), seed=7), made(1.0, seed=8)], ["seed=9"]),
    }
    printed = []
    for name, (folders, *failures) in sweeps.items():
        text, status = list_runs(folders, capsys, monkeypatch, *failures)
        printed.append(f"## {name}: status {status}\n{text}".replace(str(tmp_path), "RESULTS"))
    assert "\n".join(printed) == snapshot
