"""The whole ``metrics.json`` and ``summary.txt`` of runs in which everything happens that they report."""

import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import CacheCounters, Completion, Fault, Message, Usage
from ace_bench.runners.metrics import objective
from ace_bench.runners.summary import summary_text
from ace_bench.store.processes import Commit, Process
from tests.runners.scripted import Scripted, Toy, ToySession, bullets_in, gold, lesson, play, reflection, right, wrong

LOST = Fault(owner="backbone", kind="no_reply", message="timed out")


class Metered(Scripted):
    """Has prices, and a server that was asked before and finds a quarter of each prompt in its cache."""

    looked_up = 40
    price_list = "kept-prices 7"

    def dollars(self, usage):
        return PriceCard(input=1.0, cached_input=0.5, output=2.0).dollars(usage)

    def cache_counters(self):
        return CacheCounters(queries=self.looked_up, hits=self.looked_up // 4)

    def complete(self, messages, **about):
        self.looked_up += 100
        return super().complete(messages, **about)


class Breaking(ToySession):
    """A session that fails to grade."""

    def __init__(self, sample, owner):
        super().__init__(sample)
        self._owner = owner

    def grade(self, answer):
        raise RolloutFault(Fault(owner=self._owner, kind="server_died", message="the environment is gone"))


class Eventful(Toy):
    """A judged task whose environment breaks at first for one sample, and for good for another one."""

    judge_template = "judge"
    breaks = {"toy-test-0": ("task", 1), "toy-test-1": ("task", 9), "toy-test-6": ("model", 1)}  # noqa: RUF012

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self._tries = Counter()

    @contextmanager
    def open(self, sample):
        owner, times = self.breaks.get(sample.id, ("", 0))
        self._tries[sample.id] += 1
        yield Breaking(sample, owner) if self._tries[sample.id] <= times else ToySession(sample)

    def prompt_fields(self, inputs, shown):
        return {}

    def judge(self, sample, answer, grade, prompts, lm):
        return replace(grade, report=lm([Message(role="user", content=f"Is {answer} right for {sample.id}?")]).text)


def generator(call):
    if call.sample == "toy-test-2":
        return LOST
    if call.sample == "toy-test-3" or (call.sample == "toy-train-0" and call.trial == 0):
        return "I would rather not say."  # though it is asked again
    if call.sample.startswith("toy-train") and call.trial == 0:
        return wrong(call)
    if call.sample == "toy-val-1" and bullets_in(call.prompt) < 2:
        return wrong(call)
    if call.sample == "toy-test-5" and call.nth == 0:
        return "Not yet."
    text = json.dumps(right(call))
    usage = Usage(prompt=1_500, completion=20, cached=500, usd=0.002)
    return Completion(text=text, usage=usage, seconds=2.0, waited=65.0, retries=2, cut=call.sample == "toy-test-4")


def reflector(call):
    return "no JSON" if call.sample == "toy-train-1" else reflection("insight", others_00001="helpful")


def judge(call):
    return Fault(owner="model", kind="content_filter", message="no") if call.sample == "toy-test-4" else "yes"


CLOCKED = {"wall_s", "wall_without_waiting_s", "tokens_per_s", "calls_in_flight"}


def lasting(metrics):
    """Return metrics without what depends on the clock, on the words of prompts or on the authors' code."""
    for part in metrics["timing"].values():
        for name in CLOCKED & part.keys():
            assert (part.pop(name) or 0) >= 0
    for place, name in ((metrics, "digest"), (metrics["context"], "digest"), (metrics["prompts"], "digest")):
        assert len(place.pop(name)) == 64
    for validation in metrics["validation"]:
        assert len(validation.pop("context")) == 64
    return {name: value for name, value in metrics.items() if name not in ("as_authors", "data")}


def without_clock(summary):
    """Return a summary without times, and without the row that compares with the authors' code."""
    kept, shown = [], True
    for line in summary.splitlines():
        if line.startswith("│ ") and line[2] != " ":
            shown = not line.startswith(("│ as the authors'", "│ code ", "│ time ", "│ generated "))
        kept += [re.sub(r"\b\d+s( \(model time)", r"0s\1", line)] * (shown or not line.startswith("│"))
    return "".join(f"{line.rstrip()}\n" for line in kept)


USUAL = Usage(prompt=10, completion=2, cached=4, usd=0.001)
EVENTS = ("mode.before=true", "mode.select=best", "mode.eval_every=2", "accept_faults=true", "concurrency=1")


def eventful(usage):
    return Metered(usage, generator=generator, reflector=reflector, curator=lesson, judge=judge)


def plain(usage):
    answers = {"toy-test-0": "no idea", "toy-test-1": ""}
    return Scripted(usage, generator=lambda call: answers.get(call.sample, gold(call.sample)))


@pytest.mark.parametrize(
    ("script", "task", "settings"),
    [
        (partial(eventful, USUAL), Eventful, EVENTS),
        (partial(eventful, replace(USUAL, cached=None, usd=None)), Eventful, (*EVENTS, "mode.epochs=2")),
        (partial(plain, Usage(completion=3)), Toy, ("method=base", "labels=none", "seed=3")),
    ],
    ids=["events", "counters", "plain"],
)
def test_all_that_a_run_reports(snapshot, script, task, settings, tmp_path):
    ran = play(tmp_path, *settings, script=script(), task=task, train=3, test=7)
    metrics, summary = lasting(ran.metrics), without_clock((ran.folder / "summary.txt").read_text())
    assert json.dumps(metrics, indent=1) == snapshot
    assert summary == snapshot


def test_rows_of_a_summary_that_few_runs_have(snapshot):
    metrics = json.loads(Path(__file__).with_name("rare_metrics.json").read_text())
    for name, seconds in {"adapt": 59.6, "evaluate": 7_530.0}.items():
        metrics["timing"][name]["wall_s"] = seconds
    metrics["timing"]["total"] = {
        "tokens_per_s": 1234.56, "call_tokens_per_s": 9.81, "calls_in_flight": 126.4,
        "probe_tokens_per_s": 219.4, "times_slower_than_probe": 22.36,
    }  # fmt: skip
    metrics |= {"protocol": "official", "simulated": False, "roles": {"generator": "models/Qwen3-8B"}}
    metrics |= {
        "backbone": "vllm",
        "trials": {"n": 7, "mean": 1.5},
        "embedder": "hashing",
        "confinement": ["namespaces"],
    }
    metrics |= {"dropped_items": {"adapt": 1_000, "evaluate": 234}, "replayed": {"adapt": 7, "evaluate": 0}}
    metrics["tokens"] |= {"adapt": {"in": 4_500_000, "out": 1e9}, "evaluate": {"in": None, "out": 999}}
    metrics["cache"]["servers"]["other"] = {"start": "cold", "adapt": {"queries": 0, "hits": 0}}
    metrics["headline"] |= {"ci95": None, "before": None}
    metrics["blank_replies"] = {"adapt": {"reflector": 2}, "evaluate": {}}
    at = datetime(2026, 11, 25, 12, tzinfo=UTC)
    common = {"packages": {"numpy": "2.1"}, "git": {"code": Commit(commit="0123456789abcdef", dirty=True)}}
    processes = [
        Process(at=at, **common),
        Process(at=at, how="replayed", reason="mine changed, and a replay gave the same result"),
        Process(at=at, how="finished", seconds=3_600, ended=at.replace(day=26), **common | {"packages": {}}),
    ]
    assert summary_text(metrics, processes) == snapshot


def test_the_summary_of_a_run_whose_playbook_costs_points_has_advice():
    metrics = json.loads(Path(__file__).with_name("rare_metrics.json").read_text())
    gain = {"n": 40, "before": 60.0, "after": 40.0, "ci95": [-33.0, -7.0], "p": 0.01, "better": 2, "worse": 10}
    metrics["timing"] = {name: {**stage, "wall_s": 1.0} for name, stage in metrics["timing"].items()}
    said = summary_text({**metrics, "gain": gain}, [Process(at=datetime(2026, 11, 25, tzinfo=UTC))])
    assert "the model answers better without its playbook" in said


def test_a_search_compares_the_best_validation_or_else_the_test():
    metrics = {"headline": {"after": 50}, "validation": [{"score": 3.0}, {"score": 7.0}, {"score": 5.0}]}
    assert objective(metrics) == 7.0
    assert objective({**metrics, "validation": []}) == 50.0


def test_replies_that_end_in_blanks_are_counted_by_role_and_the_summary_names_the_option(tmp_path):
    blank = Completion(text='{"reasoning": "The entity "' + "\n" * 3_000, usage=Usage(), seconds=0.1, cut=True)
    script = Scripted(reflector=lambda call: blank if call.nth == 0 else {"key_insight": "k"})
    ran = play(tmp_path, script=script, train=2, val=1, test=1)
    assert ran.metrics["cut_replies"]["adapt"] == ran.metrics["blank_replies"]["adapt"] == {"reflector": 2}
    summary = " ".join((ran.folder / "summary.txt").read_text().replace("│", " ").split())
    assert "replies cut in blanks reflector 2 of 4: start the server" in summary
    assert '"disable_any_whitespace": true' in summary
    assert not [call for call in script.of("reflector") if "\n" * 20 in call.prompt]
