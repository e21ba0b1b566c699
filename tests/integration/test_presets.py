"""Presets: the paper's settings, quick debugging, searches, and what others add from a folder of their own."""

import subprocess
import sys

import pytest
import yaml

from ace_bench.report.experiments import load_experiments
from tests.launching import ROOT, composed, options
from tests.report.paper.test_experiments import compose

PAPER = {
    "finer_paper": "2/ace_offline_gt/finer",
    "formula_paper": "2/ace_offline_gt/formula",
    "appworld_paper": "1/ace_offline_gt/normal_tgc",
    "ddxplus_paper": "10/ace/accuracy",
    "bird_sql_paper": "11/ace/average",
}


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("preset", [preset for preset in options("experiment") if preset.endswith("_paper")])
def test_a_preset_is_the_run_behind_a_number_of_the_paper(preset):
    planned = load_experiments().run(*PAPER[preset].split("/"))
    assert compose([f"experiment={preset}"]) == compose([*planned.overrides, "backbone=deepseek_v3_1"])


def test_what_a_user_chooses_wins_over_a_preset_and_debug_wins_over_both_presets():
    config, choices = composed("experiment=finer_paper", "method=gepa", "mode=online", "debug=fast")
    assert (choices["method"], choices["mode"], choices["backbone"]) == ("gepa", "online", "embedded")
    assert (config.limit, config.task.source, config.mode.before) == (2, "sample", False)


@pytest.mark.slow
def test_a_search_finds_the_best_run_and_repeated_runs_nothing(tmp_path):
    pytest.importorskip("optuna")
    asked = ("hparams_search=ace", "task=finer", "debug=fast", "resume=true", "results=runs")
    asked += ("hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=2")
    done = command(*asked, "mode.epochs=1", "launcher=threads", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    best = yaml.safe_load((tmp_path / "runs/sweeps/optimization_results.yaml").read_text())
    assert 0 <= best["best_value"] <= 100
    assert 0.5 <= best["best_params"]["method.refiner.threshold"] <= 0.95
    assert "mode.epochs" not in best["best_params"]  # given, so not searched
    calls = sorted((path, path.read_bytes()) for path in tmp_path.glob("**/calls.jsonl"))
    assert len(calls) == 2
    assert "[2/2]" in command(*asked, "mode.epochs=1", cwd=tmp_path).stdout
    assert calls == sorted((path, path.read_bytes()) for path in tmp_path.glob("**/calls.jsonl"))
