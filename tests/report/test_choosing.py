"""The settings and metrics by which runs are chosen and named."""

from dataclasses import replace
from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.report.choosing import (
    check_metric,
    sample_keys,
    sample_names,
    setting_path,
    unit_of,
    with_settings,
    words,
)
from ace_bench.report.records import RunSummary


def run(name, *, limit=5, threshold=0.5, **about):
    chosen = {"task": "finer", "method": "ace", "backbone": "embedded", "mode": "offline", "labels": "gold"}
    identity = {**chosen, "limit": limit, "method": {"refiner": {"threshold": threshold}, "k": 1}, "mode": {"k": 2}}
    known = {"seed": 0, "source": "sample", "simulated": True, "digest": "", "identity": identity, **chosen}
    return RunSummary(folder=Path(name), **known | about)


RUNS = [run("a"), run("b", threshold=0.7), run("c", seed=1, limit=6)]
METRICS = {"headline": {"split": "test", "metric": "accuracy"}, "splits": {"test": {"after": {"accuracy": 50.0}}}}


@pytest.mark.parametrize(
    ("conditions", "chosen"),
    [
        ([], "abc"),
        (["threshold=0.5"], "ac"),
        (["method.refiner.threshold=0.5", "seed=1,2"], "c"),
        (["threshold=0.7, 0.5", "seed=0"], "ab"),
    ],
)
def test_runs_with_all_settings_are_chosen(conditions, chosen):
    assert [one.folder.name for one in with_settings(RUNS, conditions)] == [*chosen]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("threshold=0.6", r"no run has threshold=0.6; there are threshold=0.5,0.7"),
        ("treshold=0.5", "did you mean method.refiner.threshold"),
        ("xyzzy=1", "config.yaml of a run lists its settings"),
        ("k=1", "k may be method.k or mode.k; write one of them"),
        ("seed=", "seed= names nothing"),
        ("seed=1,1", "names 1 twice"),
    ],
)
def test_a_condition_that_chooses_nothing_is_named(condition, said):
    with pytest.raises(ConfigError, match=said):
        with_settings(RUNS, [condition])


def test_names_of_settings_and_values():
    assert words(" a, b ,", "--rows") == ("a", "b")
    assert setting_path("threshold", [{"method.threshold": 1}]) == "method.threshold"
    assert setting_path("k", [{"k": 1, "method.k": 1}]) == "k"


def test_a_metric_is_one_of_the_finished_runs():
    done = [replace(RUNS[0], metrics=METRICS), RUNS[1]]
    check_metric("score", done)
    check_metric("accuracy", done)
    with pytest.raises(ConfigError, match="did you mean accuracy"):
        check_metric("acuracy", done)
    with pytest.raises(ConfigError, match="there are score, accuracy"):
        check_metric("usd.total", done)


def test_units_of_metrics():
    units = {"accuracy": "percent", "usd.total": "dollars", "usd.total/n": "dollars", "n": "", "accuracy/n": ""}
    units |= {"timing.adapt.wall_s": "seconds", "tokens.total.in": "", "headline.before": "percent", "steps": ""}
    assert {metric: unit_of(metric) for metric in units} == units


def test_runs_of_other_samples_are_told_apart_before_and_after_they_finish(monkeypatch):
    monkeypatch.setattr(RunSummary, "tested_samples", property(lambda one: [f"s{one.identity['limit']}"]))
    runs = [*RUNS, run("d"), run("e", limit=6, metrics=METRICS), run("f", source="real")]
    runs[0] = replace(runs[0], metrics=METRICS)
    keys = sample_keys(runs)
    groups = {key: "".join(name for name in "abcdef" if keys[Path(name)] == key) for key in keys.values()}
    assert sorted(groups.values()) == ["abd", "ce", "f"]
    assert sample_names({"x": {"limit": 5}, "y": {"limit": 6}}) == {"x": "limit=5", "y": "limit=6"}
    assert sample_names({"xx": {}, "yy": {}}) == {"xx": "samples xx", "yy": "samples yy"}
