"""Presets: the paper's settings, quick debugging, searches, and what others add from a folder of their own."""

import json
import re
import subprocess
import sys
from importlib.resources import files

import pytest
import yaml

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.report.experiments import load_experiments
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, composed, launch, options
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


def test_what_a_small_real_model_learns_is_in_no_prompt_and_asked_in_other_words():
    samples = files("ace_bench.tasks") / "samples" / "rooms" / "questions.jsonl"
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    asked = {split: {row["question"] for row in rows if row["split"] == split} for split in ("train", "val", "test")}
    assert {split: len(questions) for split, questions in asked.items()} == {"train": 24, "val": 8, "test": 40}
    assert len(set.union(*asked.values())) == 72, "no question is in two splits"
    assert {row["answer"][0] for row in rows} == {row["answer"][0] for row in rows[:12]}, "the first 12 teach all facts"
    prompts = "".join(path.read_text() for path in (ROOT / "prompts" / "short").rglob("*.j2"))
    things = {row["answer"][0].split()[1] for row in rows}
    places = {row["answer"][0].split()[-1].strip(".") for row in rows}
    assert len(things) == len(places) == 4
    assert not (things | places) & set(re.findall(r"[a-z]+", prompts.lower()))


@pytest.mark.parametrize("method", ["base", "icl", "ace", "combee", "dc", "mem_prompt"])
def test_the_methods_run_with_the_prompts_for_small_models(method, tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        served = over_http(server.address)
        ran = launch(tmp_path, "experiment=real_small_model", f"method={method}", *served, "limit=2")
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 2


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
    assert command(*asked, "mode.epochs=1", cwd=tmp_path).stdout.count("This run is finished") == 2
    assert calls == sorted((path, path.read_bytes()) for path in tmp_path.glob("**/calls.jsonl"))
