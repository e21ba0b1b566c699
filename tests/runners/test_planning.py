"""Planning: configurations are cached on disk by the content of their files, and a useless cache changes nothing."""

import shutil

import pytest
import yaml

from ace_bench.core.errors import ConfigError
from ace_bench.runners.composing import compose_run
from ace_bench.runners.planning import Composer
from tests.launching import ROOT

OVERRIDES = ("task=formula", "method=icl", "limit=3")


@pytest.fixture
def configs(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(ROOT / "configs", tmp_path / "configs")


def cached(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_second_process_reads_what_the_first_one_composed(configs, tmp_path, monkeypatch):
    first = Composer([configs])(OVERRIDES)
    monkeypatch.setattr(Composer, "_merge_choices", None)
    other = Composer([configs])((*OVERRIDES, "seed=1"))
    assert other == {**first, "seed": 1}, "its options are composed already"
    monkeypatch.setattr(Composer, "compose", None)
    assert Composer([configs])(OVERRIDES) == first
    assert len(cached(tmp_path)) == 3, "of the options of both, and of each"


def test_a_changed_file_is_seen(configs):
    before = Composer([configs])(OVERRIDES)
    path = configs / "config.yaml"
    path.write_text(path.read_text().replace("concurrency: 8", "concurrency: 7"))
    assert (before["concurrency"], Composer([configs])(OVERRIDES)["concurrency"]) == (8, 7)


def test_without_a_place_for_the_cache_planning_works_and_mistakes_are_named(configs, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    compose = Composer([configs])
    assert compose(OVERRIDES)["task"]["_target_"].endswith("Formula")
    with pytest.raises(ConfigError, match="task=nothing"):
        compose(("task=nothing",))


def test_a_command_that_was_composed_is_read_without_hydra(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path / "cache"))
    first = compose_run(OVERRIDES)
    monkeypatch.setattr(Composer, "__init__", None)
    assert compose_run(OVERRIDES) == first
    assert first.settings == yaml.safe_load(first.text)
    assert first.choices["method"] == "icl"


def test_a_command_that_reads_the_environment_is_composed_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path / "cache"))
    found = []
    for name in ("one", "two"):
        monkeypatch.setenv("NAME_OF_THE_RUNS", name)
        words = [*OVERRIDES, "name=${oc.env:NAME_OF_THE_RUNS}"]
        found += [compose_run(words).settings["name"], Composer([ROOT / "configs"])(words)["name"]]
    assert found == ["one", "one", "two", "two"]


def test_the_runs_of_a_sweep_and_one_of_a_search(configs):
    compose = Composer([configs])
    words = ["task=finer,formula", "seed=0,1", "name=x", "hydra.verbose=true", "~hydra/output"]
    runs = [(f"task={task}", f"seed={seed}", "name=x") for task in ("finer", "formula") for seed in (0, 1)]
    assert compose.sweep(words, searches=False) == runs
    assert compose.sweep(words, searches=True) == runs[:1]
    assert compose.sweep(["task=finer,formula", "method.x=interval(0,1)"], searches=True) == [("task=finer",)]
    with pytest.raises(ConfigError, match=r"^task=finer seed=\(1 cannot be parsed: "):
        compose.sweep(["task=finer", "seed=(1"], searches=False)
