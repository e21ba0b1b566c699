"""Figures of long episodes, from a run's journal and calls."""

import json

import pytest
import yaml

from ace_bench.core.resources import config_folders, options
from ace_bench.core.types import Stage, Usage
from ace_bench.report.episodes import episodes_of, figure_of, long_ones
from ace_bench.report.evidence import CallCosts

SETTINGS = {"agent": {"tools": yaml.safe_load(options("tools", config_folders())["appworld"].read_text())}}
METRICS = {"headline": {"split": "test"}, "context": {"digest": "abc"}}
LOOKUP = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"


def rollout(sample, actions, **changes):
    turns = [{"action": one, "observation": "shown", "thought": ""} for one in actions]
    line = {
        "kind": "rollout", "key": f"evaluate/{sample}/abc/0", "stage": "evaluate", "split": "test", "context": "abc",
        "trial": 0, "sample": sample, "grade": {"score": 1.0, "correct": True},
        "attempt": {"trajectory": turns, "counters": {"lookups_saved": 1}},
    }  # fmt: skip
    return {**line, **changes}


def call(sample, cached=600):
    usage = Usage(prompt=1000, completion=10, cached=cached, usd=0.0)
    return CallCosts(stage=Stage.EVALUATE, role="generator", session=f"evaluate/{sample}/abc/0", usage=usage)


@pytest.fixture
def episodes(tmp_path):
    lines = [
        rollout("a", [LOOKUP, "x = 1", LOOKUP, "y = 1", LOOKUP]),
        rollout("b", ["x = 1"] * 6, grade={"score": 0.0, "correct": False}),
        rollout("short", [LOOKUP] * 4),
        rollout("other", [LOOKUP] * 9, context="before"),
        rollout("learnt", [LOOKUP] * 9, stage="adapt"),
        {"kind": "clock"},
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    calls = [call("a"), call("a"), call("b"), call("short")]
    return long_ones(episodes_of(tmp_path, settings=SETTINGS, metrics=METRICS, calls=calls))


@pytest.mark.parametrize(
    ("what", "figure"),
    [
        ("n", 2),
        ("steps", 5.5),
        ("redundant_calls", 1.0),
        ("from_memory", 1.0),
        ("tokens", 1515.0),
        ("success", 50.0),
        ("cached", 60.0),
        ("colour", None),
    ],
)
def test_only_episodes_of_of_five_and_more_steps_count(episodes, what, figure):
    assert figure_of(episodes, what) == figure


def test_unknown_is_not_zero(tmp_path):
    (tmp_path / "journal.jsonl").write_text(json.dumps(rollout("a", ["x = 1"] * 5)) + "\n")
    unknown = call("a", cached=None)
    (episode,) = long_ones(episodes_of(tmp_path, settings=SETTINGS, metrics=METRICS, calls=[unknown]))
    assert figure_of([episode], "cached") is None
    assert figure_of([episode], "tokens") == 1010
    assert figure_of([], "tokens") is None
    (unpaid,) = long_ones(episodes_of(tmp_path, settings=SETTINGS, metrics=METRICS, calls=[]))
    assert figure_of([unpaid], "tokens") is None
