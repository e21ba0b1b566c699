"""The settings and metrics by which runs are chosen and named."""

from dataclasses import replace
from pathlib import Path

import pytest

from ace_bench.core.errors import StoreError
from ace_bench.report.choosing import (
    check_metric,
    sample_keys,
    sample_names,
    setting_path,
    unit_of,
    with_settings,
)
from ace_bench.report.records import RunSummary
from tests.outcomes import outcome, outcomes


def run(name, *, limit=5, threshold=0.5, **about):
    chosen = {"task": "finer", "method": "ace", "backbone": "embedded", "mode": "offline", "labels": "gold"}
    identity = {**chosen, "limit": limit, "method": {"refiner": {"threshold": threshold}, "k": 1}, "mode": {"k": 2}}
    known = {"seed": 0, "source": "sample", "simulated": True, "digest": "", "identity": identity, **chosen}
    return RunSummary(folder=Path(name), **known | about)


RUNS = [run("a"), run("b", threshold=0.7), run("c", seed=1, limit=6)]
METRICS = {
    "schema": 1, "headline": {"split": "test", "metric": "accuracy"}, "splits": {"test": {"after": {"accuracy": 50.0}}},
    "tokens": {f"part{n}": n for n in range(12)}, "as_authors": None,
}  # fmt: skip


CHOOSING = [
    "conditions:",
    "conditions: threshold=0.5",
    "conditions: method.refiner.threshold=0.5 & seed=1,2",
    "conditions: threshold=0.7, 0.5 , & seed=0",
    "conditions: threshold=0.6",
    "conditions: treshold=0.5",
    "conditions: xyzzy=1",
    "conditions: k=1",
    "conditions: seed=",
    "conditions: seed=1,1",
    "metric: score",
    "metric: accuracy",
    "metric: acuracy",
    "metric: usd.total",
]


def test_runs_with_all_settings_are_chosen_and_a_condition_or_metric_that_fits_none_is_named(snapshot):
    done = [replace(RUNS[0], metrics=METRICS), RUNS[1]]

    def answer(line):
        kind, _, text = line.partition(": ")
        if kind == "metric":
            return str(outcome(check_metric, text, done))
        found = outcome(with_settings, RUNS, [one for one in text.split(" & ") if one])
        return found if isinstance(found, str) else " ".join(one.folder.name for one in found)

    assert outcomes(answer, CHOOSING) == snapshot


def test_a_whole_path_is_no_abbreviation():
    assert setting_path("k", [{"k": 1, "method.k": 1}]) == "k"


def test_units_of_metrics():
    units = {"accuracy": "percent", "usd.total": "dollars", "usd.total/n": "dollars", "n": "", "accuracy/n": ""}
    units |= {"timing.adapt.wall_s": "seconds", "tokens.total.in": "", "headline.before": "percent", "steps": ""}
    assert {metric: unit_of(metric) for metric in units} == units


def test_runs_of_other_samples_are_told_apart_before_and_after_they_finish(monkeypatch):
    def read_samples(one):
        assert one.finished
        if one.folder.name == "g":
            raise StoreError("its journal is damaged")
        return [f"s{one.identity['limit']}"]

    monkeypatch.setattr(RunSummary, "tested_samples", property(read_samples))
    runs = [*RUNS, run("d"), run("e", limit=6, metrics=METRICS), run("f", source="real")]
    runs[0] = replace(runs[0], metrics=METRICS)
    runs.append(run("g", metrics=METRICS))
    keys = sample_keys(runs)
    groups = {key: "".join(name for name in "abcdefg" if keys[Path(name)] == key) for key in keys.values()}
    assert sorted(groups.values()) == ["abdg", "ce", "f"]


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ([5, 6], ["limit=5", "limit=6"]),
        ([None, None], ["samples 012345", "samples abcdef"]),
        ([5, 6, None], ["limit=5, samples 012345", "limit=6, samples abcdef", "samples xyzxyz"]),
        ([5, 6, 6], ["limit=5, samples 012345", "limit=6, samples abcdef", "limit=6, samples xyzxyz"]),
    ],
)
def test_sets_of_samples_are_named_by_the_settings_that_choose_them_or_else_by_their_digests(limits, names):
    keys = ["0123456789", "abcdefghij", "xyzxyzxyz"][: len(limits)]
    sets = {key: {} if limit is None else {"limit": limit} for key, limit in zip(keys, limits, strict=True)}
    assert sample_names(sets) == dict(zip(keys, names, strict=True))
