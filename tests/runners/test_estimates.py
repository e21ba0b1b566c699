"""Estimates before a run, held against the finished run, over the embedded reader's server."""

from dataclasses import replace
from itertools import cycle

import pytest

from ace_bench.core.types import Usage
from ace_bench.runners.rehearsal import rehearse
from tests.backbones.serving import over_http
from tests.launching import PLAYBOOK, launch, options

OFFLINE, ONLINE = ("mode=offline", "mode.epochs=2"), ("mode=online",)
EXACT = ("dc", "dc_rs", "mem_prompt", "reasoning_bank", "awm_offline", "icl", "base")
"""Methods without retries, whose calls are known beforehand."""
RUNS = {
    "ace": (*OFFLINE, "mode.select=best", "mode.eval_every=5"),
    "awm": (*ONLINE, "labels=none"),
    "awm_offline": (*OFFLINE[:1], "method.examples=5", "mode.before=false"),
    "base": OFFLINE[:1],
    "combee": (*OFFLINE, "mode.batch_size=8"),
    "dc": (*ONLINE, "labels=none"),
    "frozen": (*OFFLINE[:1], f"method.context={PLAYBOOK}"),
    "gepa": (*OFFLINE[:1], "method.max_metric_calls=60"),
    "icl": (*OFFLINE[:1], "mode.before=false"),
    "mipro": (*OFFLINE[:1], "method.auto=light"),
    "reflexion": (*ONLINE, "method.trials=5"),
}
"""Any other method runs online. What a setting adds to an estimate is in test_rehearsal.py."""


def runs():
    """Yield a run of each method with a task, in turn."""
    for method, task in zip(options("method"), cycle(("formula", "finer", "ddxplus", "bird_sql")), strict=False):
        run = (f"task={task}", f"method={method}", *RUNS.get(method, ONLINE))
        yield pytest.param(run, method in EXACT, id=" ".join(run[1:]), marks=pytest.mark.slow)
    variants = (
        ("method=ace", "method.verify=true", *RUNS["ace"]),
        ("protocol=official", "method=combee", *RUNS["combee"]),
    )
    for variant in variants:
        yield pytest.param(("task=finer", *variant), False, id=" ".join(variant[:2]), marks=pytest.mark.slow)


@pytest.fixture
def measure(reader, tmp_path, monkeypatch):
    """Makes a run; returns for each figure the low end, what was spent, the typical cost and the high end."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    served = over_http(reader.address, api_key_env="OPENAI_API_KEY", prices="{input: 2, cached_input: 2, output: 8}")

    def run(*overrides):
        specs = []
        ran = launch(tmp_path, *served, "task.source=sample", *overrides, spec=lambda spec: specs.append(spec) or spec)
        assert ran.status == 0
        estimate = rehearse(specs[0])
        ends = (estimate.low, estimate.typical, estimate.high)
        calls = sum(count for roles in ran.metrics["calls"].values() for count in roles.values())
        tokens, usd = ran.metrics["tokens"]["total"], ran.metrics["usd"]["total"]
        spent = {"calls": calls, "tokens": tokens["in"] + tokens["out"], "tokens in": tokens["in"], "dollars": usd}
        figures = {
            "calls": [end.calls for end in ends],
            "tokens": [end.usage.tokens for end in ends],
            "tokens in": [end.usage.prompt for end in ends],
            "dollars": [end.usage.usd for end in ends],
        }
        return {name: (low, spent[name], typical, high) for name, (low, typical, high) in figures.items()}

    return run


@pytest.mark.parametrize(("run", "exact"), [*runs()])
def test_a_finished_run_lies_within_its_estimate_and_near_the_typical_one(run, exact, measure):
    found = measure(*run, "limit={train: 20, val: 6, test: 20}")
    always_wrong = "method=reflexion" in run  # all retries of all samples: nine times what right answers take
    for figure, (low, spent, typical, high) in found.items():
        assert low <= spent <= high * 1.000001, figure
        assert always_wrong or spent / 2 <= typical <= 2 * spent, figure
    low, spent, typical, _ = found["calls"]
    assert not exact or low == spent == typical


class Rambling:
    """The reader as a weak model: each reply takes its whole limit, and the first one asked for as JSON breaks off."""

    simulated, context_length, limit = False, 8_192, 150

    def __init__(self, inner):
        self._inner, self._asked = inner, set()
        self.name, self.identity, self.count = inner.name, inner.identity, inner.count

    def reply_limit(self, role):
        return self.limit

    def complete(self, messages, *, role, session, schema=None):
        completion = self._inner.complete(messages, role=role, session=session, schema=schema)
        prompt, room = sum(self.count(one.content) for one in messages), self.limit - self.count(completion.text)
        on = " ".join(f"{session[-9:]}{place}" for place in range(room // 4))
        text = completion.text.replace('": "', f'": "{on} ', 1) if schema else f"{on} {completion.text}"
        if schema and not messages[-1].content.startswith("That reply could not be read"):
            text = text[: len(text) // 2]
        usage = Usage(prompt=prompt * 6 // 5, completion=self.limit, cached=0)
        return replace(completion, text=text, usage=usage)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ace", "dc", "mem_prompt", "reasoning_bank", "icl"])
def test_a_model_that_uses_its_reply_limit_lies_within_the_high_end(method, tmp_path):
    run = ("task=finer", f"method={method}", *(OFFLINE[:1] if method == "icl" else ONLINE), "estimate=false")
    specs, small = [], ("task.source=sample", "limit={train: 4, val: 2, test: 5}")
    ran = launch(tmp_path, *run, *small, backbone=Rambling, spec=lambda spec: specs.append(spec) or spec)
    estimate, spent = rehearse(specs[0]), ran.metrics["tokens"]["total"]
    calls = sum(count for roles in ran.metrics["calls"].values() for count in roles.values())
    ends = (estimate.low, estimate.high)
    for actual, (low, high) in (
        (calls, [end.calls for end in ends]),
        (spent["in"], [end.usage.prompt for end in ends]),
        (spent["out"], [end.usage.completion for end in ends]),
    ):
        assert low <= actual <= high <= 4.5 * actual, (low, actual, high)
