"""What happens around a run: estimate, dry run, probes, servers, response cache, live metrics."""

import json
from dataclasses import replace

import pytest

from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_bench.core.types import CacheCounters, Probe, Usage
from tests.launching import launch

SMALL = ("task=formula", "task.source=sample", "limit={train: 4, val: 2, test: 6}", "mode.epochs=2")


class Real:
    """The embedded reader dressed up as a paid, managed server: what a real backbone offers."""

    simulated = False
    context_length = None

    def __init__(self, inner, log, **faults):
        self._inner, self._log, self._faults = inner, log, faults
        self.name, self.identity = "server", {"name": "server"}
        self._tokens = 0

    def count(self, text):
        return self._inner.count(text)

    def dollars(self, usage):
        return PriceCard(input=1.0, cached_input=0.1, output=0.0).dollars(usage)

    def start(self, say):
        self._log.append("open")
        say("server: starting")

    def close(self):
        self._log.append("close")

    def probe(self):
        self._log.append("probe")
        if "probe" in self._faults:
            raise self._faults["probe"]
        return Probe(facts={"model": "reader"}, usage=Usage())

    def cache_counters(self):
        return CacheCounters(queries=self._tokens, hits=self._tokens // 2)

    def complete(self, messages, *, role, session, schema=None):
        self._log.append(role)
        if "call" in self._faults:
            raise self._faults["call"]
        completion = self._inner.complete(messages, role=role, session=session, schema=schema)
        self._tokens += completion.usage.prompt
        return completion


def real(tmp_path, log, *overrides, made=None, **faults):
    """Run with a ``Real`` backbone, or with the one that is ``made`` of the reader."""
    backbone = made or (lambda inner: Real(inner, log, **faults))
    return launch(tmp_path, *SMALL, *overrides, backbone=backbone, spec=lambda spec: replace(spec, simulated=False))


def test_a_server_is_opened_probed_used_and_closed_and_its_counters_kept(tmp_path, capsys):
    log = []
    ran = real(tmp_path, log, "mode.epochs=1", "concurrency=1")
    assert ran.status == 0
    assert log[:2] == ["open", "probe"]
    assert log[-1] == "close"
    assert log.count("close") == 1
    output = capsys.readouterr().out
    assert "server: starting" in output
    assert "Estimate" in output
    server = ran.metrics["cache"]["servers"]["server"]
    assert server["start"] == "cold"
    for stage in ("adapt", "evaluate"):
        assert server[stage]["queries"] == ran.metrics["tokens"][stage]["in"] > 0
    cache = ran.metrics["cache"]["total"]
    assert cache["share"] > 0.5
    assert cache["saved"] == pytest.approx(0.9 * cache["share"], abs=1e-3)
    assert f"which makes input {cache['saved']:.1%} cheaper" in output
    assert json.loads((ran.folder / "endpoints.json").read_text()) == {"backbone": {"model": "reader"}}


def test_an_estimate_over_the_budget_stops_before_any_call(tmp_path, capsys):
    log = []
    stopped = real(tmp_path, log, "budget.calls=5")
    assert stopped.status == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "the run takes at least " in said
    assert "which exceeds budget.calls=5; raise it" in said
    assert log == ["open", "probe", "close"]
    assert not stopped.folder.exists(), "nothing was called"
    assert real(tmp_path, log, "budget.usd=0.000001").status == 3
    assert "generator" not in log
    assert real(tmp_path, log, "budget.calls=5", "estimate=false").status == 3
    assert [entry for entry in log if entry not in ("open", "probe", "close")] == ["generator"] * 5


def test_a_budget_that_only_the_high_end_passes_is_no_reason_to_stop(tmp_path, capsys):
    ran = real(tmp_path, [], "mode.epochs=1", "budget.calls=50")
    output = " ".join(capsys.readouterr().out.split())
    assert ran.status == 0
    assert "The bound of the estimate exceeds budget.calls=50" in output
    assert "; at most " in output.partition("Estimate: about ")[2]


@pytest.mark.parametrize("error", [ConfigError("no such model; set backbone.model"), BackboneUnavailable("no server")])
def test_a_failed_probe_ends_the_run_before_any_call_and_closes_the_server(error, tmp_path, capsys):
    log = []
    assert real(tmp_path, log, probe=error).status in (2, 3)
    assert log == ["open", "probe", "close"]
    captured = capsys.readouterr()
    assert str(error) in captured.out + captured.err


def test_a_dry_run_shows_prompts_and_an_estimate_and_leaves_nothing(tmp_path, capsys):
    ran = launch(tmp_path, *SMALL, "dry_run=true")
    prompts, _, estimate = capsys.readouterr().out.rpartition("Estimate: ")
    assert (ran.status, ran.folder.exists()) == (0, False)
    for role in ("generator", "reflector", "curator"):
        assert f"first prompt of the {role}" in prompts
    assert "<playbook>" in prompts
    assert "dollars n/a; at most" in estimate
    assert "set backbone.prices" in estimate
    assert " 0 " not in estimate
    assert "replies like those of embedded" in estimate


def test_a_shared_response_cache_pays_once_and_marks_replays(tmp_path):
    cache = f"response_cache={tmp_path / 'cache'}"
    first = launch(tmp_path / "one", *SMALL, cache)
    again = launch(tmp_path / "two", *SMALL, cache)
    assert first.metrics["replayed"] == {"adapt": 0, "evaluate": 0}
    calls = {stage: sum(roles.values()) for stage, roles in again.metrics["calls"].items()}
    assert again.metrics["replayed"] == calls
    assert again.metrics["tokens"]["total"] == {"in": 0, "out": 0}
    assert again.metrics["headline"] == first.metrics["headline"]
    other = launch(tmp_path / "three", *SMALL, cache, "seed=1")
    assert other.metrics["replayed"]["evaluate"] == 0


def test_a_prompt_and_reply_over_the_context_length_are_refused_before_a_call(tmp_path, capsys):
    log = []

    def short(inner):
        backbone = Real(inner, log)
        backbone.context_length, backbone.reply_limit = 700, lambda _: 600
        return backbone

    assert real(tmp_path, log, made=short).status == 2
    said = capsys.readouterr().err
    assert "with a reply of up to 600 that is more than the context of 700" in said
    assert "lower sampling.generator.max_tokens" in said
    assert log == ["open", "probe", "close"]
    assert real(tmp_path, log, "estimate=false", made=short).status == 0
