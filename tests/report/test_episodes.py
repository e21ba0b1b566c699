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


def read(folder, lines, calls, settings=SETTINGS):
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return episodes_of(folder, settings=settings, metrics=METRICS, calls=calls)


LINES = [
    rollout("a", [LOOKUP, "x = 1", LOOKUP, "y = 1", LOOKUP], seconds=2.5),
    rollout("b", ["x = 1"] * 6, grade={"score": 0.0, "correct": False, "detail": {"passes": 3, "tests": 4}}),
    rollout("short", [LOOKUP] * 4, attempt={}),
    rollout("other", [LOOKUP] * 9, context="before"),
    rollout("learnt", [LOOKUP] * 9, stage="adapt"),
    {"kind": "clock"},
]
CALLS = [call("a"), call("a"), call("b")]


def test_the_figures_of_an_episode_are_those_of_its_attempt_and_calls(tmp_path):
    usual = {"steps": 5, "redundant_calls": 2, "from_memory": 1, "success": 100.0, "quality": None, "seconds": 2.5}
    assert {one.figures["tokens"]: dict(one.figures) for one in read(tmp_path, LINES, CALLS)} == {
        2020: {**usual, "tokens": 2020},
        1010: {
            **usual,
            "steps": 6,
            "redundant_calls": 0,
            "success": 0.0,
            "quality": 7.5,
            "seconds": None,
            "tokens": 1010,
        },
        None: {**usual, "steps": 0, "redundant_calls": 0, "from_memory": 0, "seconds": None, "tokens": None},
    }
    without = read(tmp_path, LINES, CALLS, {"agent": {}})
    assert [one.figures["redundant_calls"] for one in without] == [0, 0, 0]


@pytest.mark.parametrize(
    ("what", "figure"),
    [
        *(("n", 2), ("steps", 5.5), ("redundant_calls", 1.0), ("from_memory", 1.0), ("tokens", 1515.0)),
        *(("success", 50.0), ("cached", 60.0), ("seconds", None), ("colour", None)),
    ],
)
def test_only_episodes_of_five_and_more_steps_are_long(tmp_path, what, figure):
    assert figure_of(long_ones(read(tmp_path, LINES, CALLS)), what) == figure


def test_unknown_is_not_zero(tmp_path):
    episodes = read(tmp_path, LINES[:1], [call("a", cached=None)])
    assert [figure_of(episodes, what) for what in ("cached", "tokens")] == [None, 1010]
    assert [figure_of([], what) for what in ("n", "cached", "tokens")] == [0, None, None]
