"""Reflexion and best of k: who is tried again, what a trial is shown, and which trial counts."""

from collections import Counter
from types import SimpleNamespace

import pytest

from ace_bench.core.types import Fault
from ace_bench.report.records import read_run
from tests.backbones.openai_compatible.scripted import Server
from tests.backbones.openai_compatible.scripted import answer as reply
from tests.backbones.openai_compatible.test_experiment import overrides
from tests.backbones.serving import running
from tests.launching import composed, launch
from tests.packages.field.making import BROKEN, events_of, learn
from tests.runners.scripted import Scripted, answer, gold


def right_at(trials):
    """Right from a trial on, by the number of the sample; others never."""

    def generator(call):
        first = trials.get(int(call.sample[-1]))
        return answer(gold(call.sample) if first is not None and call.trial >= first else f"guess {call.trial}")

    return generator


def note(call):
    return {"reflection": f"note {call.trial} on {call.sample}"}


def trials(script, number):
    return [call for call in script.of("generator") if call.sample == f"toy-test-{number}"]


def chosen(ran):
    """The number of the trial that counts, by sample."""
    return [int(event["last"][-1]) for event in events_of(ran, "last_trial")]


def test_a_sample_is_tried_until_it_is_right_or_no_trial_is_left(tmp_path):
    ran, script = learn(
        tmp_path, "reflexion", "labels=correctness", generator=right_at({0: 0, 1: 1}), reflector=note, test=3
    )
    assert [len(trials(script, number)) for number in range(3)] == [1, 2, 3]
    assert (ran.metrics["headline"]["before"], ran.metrics["headline"]["after"]) == (33.3333, 66.6667)
    assert ran.metrics["trials"] == {"n": 3, "mean": 2.0}
    assert ran.metrics["calls"] == {"adapt": {"generator": 6, "reflector": 3}, "evaluate": {}}
    said = "2.00 a sample; the last counts, labels=correctness said which failed"
    assert said in (ran.folder / "summary.txt").read_text()
    points = read_run(ran.folder).points("accuracy")
    assert [point.score for _, point in sorted(points.items())] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("broken", ["generator", "reflector"])
def test_a_trial_or_a_reflection_that_fails_ends_the_trials(broken, tmp_path):
    roles = {"generator": right_at({}), "reflector": note}
    own = roles[broken]
    fails = lambda call: BROKEN if broken == "reflector" or call.trial == 1 else own(call)  # noqa: E731
    ran, script = learn(tmp_path, "reflexion", "labels=correctness", test=1, **{**roles, broken: fails})
    assert len(script.of("generator")) == (2 if broken == "generator" else 1)
    assert ran.metrics["faults"]["adapt"] == {f"{broken}/model/content_filter": 1}
    assert chosen(ran) == [0]


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


@pytest.mark.parametrize("labels", ["correctness", "gold"])
def test_with_the_verdict_draws_end_with_the_first_right_one_or_with_reflexions_calls(labels, tmp_path):
    def generator(call):
        right_at = {0: 0, 1: 3}.get(int(call.sample[-1]))
        return BROKEN if call.trial == 4 else answer(gold(call.sample) if call.trial == right_at else "no")

    ran, script = learn(tmp_path, "best_of_k", f"labels={labels}", generator=generator, test=3)
    assert [len(trials(script, n)) for n in range(3)] == [1, 4, 5], "three trials of Reflexion are at most five calls"
    assert chosen(ran) == [0, 3, 3], "the last counts that no fault ended"
    assert len({call.prompt for call in trials(script, 2)}) == 1
    assert (ran.metrics["headline"]["before"], ran.metrics["headline"]["after"]) == (33.3333, 66.6667)
    assert "3.33 a sample; the last counts, labels=" in (ran.folder / "summary.txt").read_text()


def test_without_the_verdict_all_are_drawn_and_the_answer_of_most_counts(tmp_path):
    said = {0: ["a", "B ", "b", BROKEN, BROKEN, "c", BROKEN], 1: ["x", "y", "y", "x", "z", "z", "?"], 2: [BROKEN] * 7}

    def generator(call):
        text = said[int(call.sample[-1])][call.trial]
        return text if isinstance(text, Fault) else answer(text)

    ran, script = learn(tmp_path, "best_of_k", "labels=none", "mode.window=3", generator=generator, test=3)
    assert len(script.calls) == 21, "Reflexion's judge is called for two trials, too"
    assert chosen(ran) == [1, 0, 0], "the earliest of the most, and the first where none was finished"
    assert [event["votes"] for event in events_of(ran, "voted")] == [2, 2, 0]
    assert "7.00 a sample; the answer of most of them counts" in (ran.folder / "summary.txt").read_text()


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
    seeds = [body.get("seed") for body in asked]
    assert sorted(Counter(seeds).values()) == ([2] * 7 if seed == "7" else [14]), "samples share the seeds of draws"
    assert (7 in seeds) is (seed == "7"), "the first draw has the run's, and null is never sent"


def test_draws_are_as_many_as_reflexions_trials_allow():
    trials = [composed(f"method={method}")[0].method.trials for method in ("best_of_k", "reflexion")]
    assert trials[0] == trials[1]
