"""Whole experiments through the client, against the embedded reader's server with faults on purpose."""

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ace_rehearsal.server.faults import Faults
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.openai_compatible.scripted import Server, answer, error
from tests.backbones.serving import running
from tests.launching import launch

MIX = {"http_500": 0.1, "http_429": 0.05, "drop": 0.05, "truncate": 0.05, "empty": 0.02}
"""What the harness must bear (the truncated replies are JSON cut in the middle)."""
SAMPLES = ("task=finer", "mode.epochs=2", "task.source=sample", "limit={train: 8, val: 4, test: 12}")
KEY = "sk-planted-0123456789abcdef"


@contextmanager
def reader(chances=None, seed=0):
    with running(ReaderServer(host="127.0.0.1", port=0, faults=Faults(chances=chances or {}, seed=seed))) as server:
        yield server


def overrides(server, *more):
    return (
        "backbone=openai_compatible",
        f"backbone.base_url={server.address}",
        "backbone.model=embedded",
        "backbone.simulated=true",
        "backbone.retry.first_pause=0.001",
        "backbone.retry.longest_pause=0.002",
        *SAMPLES,
        *more,
    )


@pytest.mark.slow
def test_faults_on_the_way_change_nothing_but_time(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with reader() as server:
        calm = launch(tmp_path / "calm", *overrides(server))
    with reader(MIX) as server:
        stormy = launch(tmp_path / "stormy", *overrides(server))
        happened = {kind: server.stats().get(f"fault_{kind}", 0) for kind in MIX}
    assert (calm.status, stormy.status) == (0, 0)
    assert all(happened.values()), happened
    for ran in (calm, stormy):
        assert ran.metrics["headline"]["n"] == 12
        assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert stormy.metrics["headline"]["after"] == calm.metrics["headline"]["after"]
    assert stormy.metrics["calls"] == calm.metrics["calls"]
    assert sum(call["retries"] for call in stormy.lines("calls")) == sum(happened.values())


@pytest.mark.slow
def test_calls_that_were_lost_are_asked_again_and_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with reader() as server:
        calm = launch(tmp_path / "calm", *overrides(server))
    chances = {"http_500": 0.15, "drop": 0.1, "truncate": 0.1}
    with reader(chances, seed=2) as server:  # this seed spares the pre-flight's call
        patient = ("backbone.retry.times=0", "stop_after_faults=50")
        stormy = launch(tmp_path / "stormy", *overrides(server, *patient))
        happened = {kind: server.stats().get(f"fault_{kind}", 0) for kind in chances}
    assert all(happened.values()), happened
    assert stormy.status == 0
    assert stormy.lasting() == calm.lasting()


@pytest.mark.slow
def test_with_little_patience_every_sample_is_still_accounted_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # Seed 2 spares the pre-flight's call.
    with reader({kind: 2 * chance for kind, chance in MIX.items()}, seed=2) as server:
        ran = launch(tmp_path, *overrides(server, "concurrency=1", "backbone.retry.times=1", "accept_faults=true"))
    assert ran.status == 0
    assert ran.metrics["headline"]["n"] == 12
    counted: Counter[str] = Counter()
    for faults in ran.metrics["faults"].values():
        counted.update(faults)
    assert {fault.split("/", 1)[1] for fault in counted} >= {"backbone/server_error", "backbone/dropped"}, counted
    recorded = [rollout["fault"] for rollout in ran.lines("journal") if rollout.get("fault")]
    assert recorded
    assert {f"generator/{fault['owner']}/{fault['kind']}" for fault in recorded} <= counted.keys()


def test_the_key_is_nowhere_in_the_run_folder_or_the_output(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with reader(MIX) as server:
        ran = launch(tmp_path, *overrides(server, "backbone.retry.times=0", "accept_faults=true"))
    assert ran.status == 0
    written = [path for path in ran.folder.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err


class Limited(Server):
    """Refuses JSON schemas as llama.cpp's Python server does, until ``takes_schemas``."""

    takes_schemas = False

    def next(self, path, headers, body):
        form = (body or {}).get("response_format", {}).get("type")
        found = super().next(path, headers, body)
        refused = form == "json_schema" and not self.takes_schemas
        return error(500, "1 validation error: response_format: Input should be 'text'") if refused else found


def test_a_continued_run_asks_in_the_form_in_which_it_began(tmp_path):
    server = Limited([answer('{"reasoning": "r", "bullet_ids": [], "final_answer": "x"}')], ["embedded"])
    run = ("method=base", "agent.scaffold=json", "concurrency=1", "limit=4", "mode.epochs=1", "estimate=false")
    with running(server):
        base = overrides(SimpleNamespace(address=server.url), "backbone.api_key_env=null", *run)
        stopped = launch(tmp_path, *base, "budget.calls=2")
        server.takes_schemas = True
        ended = launch(tmp_path, *base)
    forms = [body["response_format"] for body in server.asked() if "response_format" in body]
    assert (stopped.status, ended.status) == (3, 0)
    assert [form["type"] for form in forms[:3]] == ["json_schema", "json_schema", "json_object"]
    assert all("schema" in form for form in forms[2:]), "the run began in llama.cpp's form and goes on so"
    assert len(forms) == 2 + 2 + 4
