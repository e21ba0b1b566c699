"""Estimates before a run, held against the finished run, over the embedded reader's server."""

import pytest

from ace_bench.runners.rehearsal import rehearse
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.launching import launch

OFFLINE, ONLINE = "mode=offline", "mode=online"
RUNS = {
    "ace offline": ("task=formula", "method=ace", OFFLINE, "mode.epochs=2"),
    "ace offline, no labels": ("task=finer", "method=ace", OFFLINE, "mode.epochs=1", "labels=none"),
    "ace offline, best of validation": ("task=formula", "method=ace", OFFLINE, "mode.epochs=2", "mode.select=best"),
    "ace online": ("task=finer", "method=ace", ONLINE),
    "ace online, no labels": ("task=formula", "method=ace", ONLINE, "labels=none"),
    "ace online, windows": ("task=formula", "method=ace", ONLINE, "mode.window=4", "mode.before=false"),
    "ace, no reflector": ("task=formula", "method=ace", OFFLINE, "mode.before=false", "method.reflector=off"),
    "dc": ("task=formula", "method=dc", ONLINE, "labels=none"),
    "dc offline": ("task=formula", "method=dc", OFFLINE, "mode.epochs=1", "mode.before=false"),
    "dc_rs": ("task=formula", "method=dc_rs", ONLINE, "labels=none"),
    "reflexion": ("task=formula", "method=reflexion", ONLINE),
    "mem_prompt": ("task=formula", "method=mem_prompt", ONLINE),
    "awm": ("task=formula", "method=awm", ONLINE, "labels=none"),
    "reasoning_bank": ("task=formula", "method=reasoning_bank", ONLINE),
    "awm offline": ("task=formula", "method=awm_offline", OFFLINE, "method.examples=5", "mode.before=false"),
    "icl": ("task=finer", "method=icl", OFFLINE, "mode.before=false"),
    "gepa": ("task=formula", "method=gepa", OFFLINE, "method.max_metric_calls=60"),
    "mipro": ("task=formula", "method=mipro", OFFLINE, "method.auto=light"),
    "base": ("task=finer", "method=base", OFFLINE),
    "heuristic": ("task=formula", "method=heuristic", ONLINE),
}
EXACT = (
    "ace, no reflector",
    "dc",
    "dc offline",
    "dc_rs",
    "mem_prompt",
    "reasoning_bank",
    "awm offline",
    "icl",
    "base",
    "heuristic",
)
"""Runs without retries, whose calls are known beforehand."""


@pytest.fixture(scope="module")
def server():
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name == "heuristic")) for name in RUNS]
)  # importing what the heuristic method needs takes ten seconds
def test_a_finished_run_lies_within_its_estimate(name, server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    served = (
        "backbone=openai_compatible",
        f"backbone.base_url={server.address}",
        "backbone.model=embedded",
        "backbone.simulated=true",
        "backbone.prices={input: 2, cached_input: 2, output: 8}",
    )
    specs = []
    ran = launch(
        tmp_path,
        *served,
        *RUNS[name],
        "task.source=sample",
        "limit={train: 12, val: 6, test: 10}",
        spec=lambda spec: specs.append(spec) or spec,
    )
    assert ran.status == 0
    estimate = rehearse(specs[0])
    low, high = estimate.low, estimate.high
    calls = sum(count for roles in ran.metrics["calls"].values() for count in roles.values())
    assert low.calls <= calls <= high.calls
    assert (low.calls == high.calls) == (name in EXACT)
    tokens, usd = ran.metrics["tokens"]["total"], ran.metrics["usd"]["total"]
    for spent, least, most in (
        (tokens["in"], low.usage.prompt, high.usage.prompt),
        (tokens["out"], low.usage.completion, high.usage.completion),
        (usd, low.usage.usd, high.usage.usd),
    ):
        assert 0.7 * least <= spent <= 1.4 * most, "questions and replies may be longer than those rehearsed"


@pytest.mark.thorough
def test_attempts_at_an_environment_are_limited_by_their_own_setting(server, tmp_path, monkeypatch, one_warm_engine):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    specs = []
    run = ("task=appworld", "method=ace", OFFLINE, "mode.epochs=1", "mode.before=false", "agent.max_steps=3")
    ends = {}
    for labels in ("none", "gold"):
        small = ("task.source=sample", "limit={train: 1, val: 1, test: 1}", f"labels={labels}")
        launch(tmp_path, *run, *small, "dry_run=true", spec=lambda spec: specs.append(spec) or spec)
        ends[labels] = rehearse(specs[-1])
    assert ends["none"].low.calls * 3 < ends["gold"].high.calls
    assert ends["none"].high.calls < ends["gold"].high.calls / 2
