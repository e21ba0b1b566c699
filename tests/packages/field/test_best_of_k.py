"""Best of k: how many draws are made, what each is sent, and which one counts."""

from collections import Counter
from types import SimpleNamespace

import pytest

from ace_bench.core.types import Fault
from tests.backbones.openai_compatible.scripted import Server
from tests.backbones.openai_compatible.scripted import answer as reply
from tests.backbones.openai_compatible.test_experiment import overrides
from tests.backbones.serving import running
from tests.launching import composed, launch
from tests.runners.scripted import Scripted, answer, events, gold, play

BROKEN = Fault(owner="model", kind="content_filter", message="no")


def best_of_k(tmp_path, generator, *settings, test=3):
    script = Scripted(generator=generator)
    ran = play(tmp_path, "mode=online", *settings, script=script, method="best_of_k", test=test)
    assert ran.status == 0
    drawn = [[call for call in script.of("generator") if call.sample == f"toy-test-{n}"] for n in range(test)]
    assert len(script.calls) == sum(map(len, drawn)), "no other role is called"
    return ran, drawn


def chosen(ran):
    """The number of the draw that counts, by sample."""
    return [int(event["last"][-1]) for event in events(ran) if event["event"] == "last_trial"]


@pytest.mark.parametrize("labels", ["correctness", "gold"])
def test_with_the_verdict_draws_end_with_the_first_right_one_or_with_reflexions_calls(labels, tmp_path):
    def generator(call):
        right_at = {0: 0, 1: 3}.get(int(call.sample[-1]))
        return BROKEN if call.trial == 4 else answer(gold(call.sample) if call.trial == right_at else "no")

    ran, drawn = best_of_k(tmp_path, generator, f"labels={labels}")
    assert list(map(len, drawn)) == [1, 4, 5], "three trials of Reflexion are at most five calls"
    assert chosen(ran) == [0, 3, 3], "the last counts that no fault ended"
    assert len({call.prompt for call in drawn[2]}) == 1
    assert (ran.metrics["headline"]["before"], ran.metrics["headline"]["after"]) == (33.3333, 66.6667)
    assert "3.33 a sample; the last counts, labels=" in (ran.folder / "summary.txt").read_text()


def test_without_the_verdict_all_are_drawn_and_the_answer_of_most_counts(tmp_path):
    said = {0: ["a", "B ", "b", BROKEN, BROKEN, "c", BROKEN], 1: ["x", "y", "y", "x", "z", "z", "?"], 2: [BROKEN] * 7}

    def generator(call):
        text = said[int(call.sample[-1])][call.trial]
        return text if isinstance(text, Fault) else answer(text)

    ran, drawn = best_of_k(tmp_path, generator, "labels=none", "mode.window=3")
    assert list(map(len, drawn)) == [7] * 3, "Reflexion's judge is called for two trials, too"
    assert chosen(ran) == [1, 0, 0], "the earliest of the most, and the first where none was finished"
    assert [event["votes"] for event in events(ran) if event["event"] == "voted"] == [2, 2, 0]
    assert "7.00 a sample; the answer of most of them counts" in (ran.folder / "summary.txt").read_text()


def test_queries_vote_by_what_the_database_showed(tmp_path):
    asked = iter(["SELECT 1", "SELECT 2", "SELECT 1 + 1", "SELECT 3"])
    script = Scripted(generator=lambda _: answer(next(asked)))
    settings = ("task=bird_sql", "task.source=sample", "method=best_of_k", "method.trials=2", "labels=none")
    ran = launch(
        tmp_path, *settings, "mode=online", "limit=1", "concurrency=1", "estimate=false", backbone=lambda _: script
    )
    assert ran.status == 0
    assert chosen(ran) == [1]


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
    seeds = [body.get("seed") for body in asked]
    assert sorted(Counter(seeds).values()) == ([2] * 7 if seed == "7" else [14]), "samples share the seeds of draws"
    assert (7 in seeds) is (seed == "7"), "the first draw has the run's, and null is never sent"


def test_draws_are_as_many_as_reflexions_trials_allow():
    trials = [composed(f"method={method}")[0].method.trials for method in ("best_of_k", "reflexion")]
    assert trials[0] == trials[1]
