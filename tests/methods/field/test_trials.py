"""Reflexion and best of k: who is tried again, what a trial is shown, and which trial counts."""

from types import SimpleNamespace

import pytest

from tests.backbones.openai_compatible.scripted import Server
from tests.backbones.openai_compatible.scripted import answer as reply
from tests.backbones.openai_compatible.test_experiment import overrides
from tests.backbones.serving import running
from tests.launching import composed, launch
from tests.methods.field.making import events_of
from tests.runners.scripted import Scripted, answer


def chosen(ran):
    """The number of the trial that counts, by sample."""
    return [int(event["last"][-1]) for event in events_of(ran, "last_trial")]


HTTP = overrides(SimpleNamespace(address="http://127.0.0.1:9"), "backbone.api_key_env=null")
COLD = (*HTTP, "method=best_of_k", "mode=online", "mode.epochs=1", "sampling.generator.temperature=0")
ONLINE = "carries nothing from sample to sample: use mode=online"
REFUSED = {
    "offline": (("method=reflexion", "mode=offline"), ONLINE),
    "evaluate": (("method=reflexion", "mode=evaluate", "mode.context=none.json"), ONLINE),
    "reference": (("method=reasoning_bank", "method.protocol=authors", "method.reference=true"), "use reference=false"),
    "memory": (("method=awm", "method.protocol=authors", "method.initial=workflows.json"), "use initial=null"),
    "temperature 0": (COLD, "at temperature 0 all draws are the same reply"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_before_any_call(case, tmp_path, monkeypatch, capsys):
    settings, said = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.json").write_text('{"kind": "none"}')
    (tmp_path / "workflows.json").write_text('{"kind": "workflows", "items": []}')
    assert launch(tmp_path, "task=formula", "task.source=sample", *settings).status == 2
    assert said in capsys.readouterr().err


def test_queries_vote_by_what_the_database_showed(tmp_path):
    asked = iter(["SELECT 1", "SELECT 2", "SELECT 1 + 1", "SELECT 3"])
    script = Scripted(generator=lambda _: answer(next(asked)))
    settings = ("task=bird_sql", "task.source=sample", "method=best_of_k", "method.trials=2", "labels=none")
    more = ("mode=online", "limit=1", "concurrency=1", "estimate=false")
    assert chosen(launch(tmp_path, *settings, *more, backbone=lambda _: script)) == [1]


@pytest.mark.parametrize("seed", ["7", "null"])
def test_each_draw_is_a_request_of_its_own_seed(seed, tmp_path):
    server = Server([reply('{"reasoning": "r", "final_answer": "x"}')], ["embedded"])
    run = ("method=best_of_k", "mode=online", "~mode.epochs", "+mode.epochs=1", "labels=none", "limit=2", "seed=7")
    more = ("estimate=false", f"backbone.sampling.seed={seed}", f"response_cache={tmp_path / 'cache'}")
    with running(server):
        http = overrides(SimpleNamespace(address=server.url), "backbone.api_key_env=null", *run, *more)
        assert launch(tmp_path, *http).status == 0
        asked = [body for body in server.asked() if body["temperature"] == 0.7]
        assert launch(tmp_path, *http, "name=again").status == 0
    assert len(asked) == 14, "the cache has no reply to another draw"
    assert len([body for body in server.asked() if body["temperature"] == 0.7]) == 14, "and those of the same"
    seeds = {body.get("seed") for body in asked}
    assert len(seeds) == 14 if seed == "7" else seeds == {None}, "null is never sent"


def test_draws_are_as_many_as_reflexions_trials_allow():
    trials = [composed(f"method={method}")[0].method.trials for method in ("best_of_k", "reflexion")]
    assert trials[0] == trials[1]
