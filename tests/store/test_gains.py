"""What a run says of its own gain, in figures and in words."""

from types import SimpleNamespace

import pytest

from ace_bench.core.types import Usage
from ace_bench.store.gains import (
    advice_on_gain,
    command_of_base,
    describe_cost,
    limits_of_one_run,
    measure_gain,
    query_cost,
)


def grades(*scores, group=""):
    return [SimpleNamespace(score=score, group=group) for score in scores]


def measured(before, after):
    change = 100 * (sum(after) - sum(before)) / len(after)
    return measure_gain(grades(*before), grades(*after), change, stream=False)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([0.0] * 40, [1.0] * 30 + [0.0] * 10, "Adaptation raises test accuracy by 75.0 points, from 0.0 to 75.0 (95%"),
        ([1.0] * 40, [0.0] * 30 + [1.0] * 10, "Adaptation lowers test accuracy by 75.0 points, from 100.0 to 25.0"),
        (
            [0.0] * 40,
            [1.0] + [0.0] * 39,
            "Adaptation is not shown to change test accuracy: +2.5 points, from 0.0 to 2.5",
        ),
    ],
)
def test_the_sentence_says_no_more_than_the_interval(before, after, words):
    gain = measured(before, after)
    sentence = gain.describe("Adaptation", "test accuracy")
    assert sentence.startswith(words)
    assert "paired t test over 40 samples, p" in sentence
    assert ("A test of this size finds" in sentence) == (gain.p >= 0.05)
    assert gain.describe("Adaptation", "test accuracy", marks=["simulated"]).startswith("[simulated] Adaptation")


@pytest.mark.parametrize(
    ("high", "kind", "advised"), [(-1.0, "playbook", True), (0.5, "playbook", False), (-1.0, "cheatsheet", False)]
)
def test_a_playbook_that_costs_points_for_certain_has_advice(high, kind, advised):
    advice = advice_on_gain({"gain": {"ci95": [-20.0, high]}, "context": {"kind": kind}})
    assert (advice is not None) == advised
    assert not advised or "method.retrieval.mode=bm25 method.retrieval.top_k=4" in advice
    assert advice_on_gain({"context": {"kind": "playbook"}}) is None, "nothing was tested before adaptation"


def test_a_metric_that_is_no_mean_of_scores_has_no_test():
    assert measure_gain(grades(0.0, 1.0), grades(1.0, 1.0), 12.0, stream=False) is None
    assert measured([0.0], [1.0]) is None, "one sample tells nothing"


def test_a_query_costs_what_the_generator_used_and_unknown_is_not_zero():
    def call(role, session="a", *, usd=0.5, replayed=False):
        completion = SimpleNamespace(usage=Usage(prompt=10, completion=2, cached=0, usd=usd), replayed=replayed)
        return SimpleNamespace(role=role, session=session, fault=None, completion=completion)

    calls = [call("generator"), call("generator", "b"), call("judge"), call("generator", "other")]
    cost = query_cost(calls, ["a", "b"])
    assert cost == {"calls": 1.0, "in": 10.0, "out": 2.0, "usd": 0.5}
    assert query_cost([call("generator", usd=None)], ["a"])["usd"] is None
    assert query_cost([call("generator", replayed=True)], ["a"])["in"] is None
    metrics = {"steps": 2, "calls": {"adapt": {"generator": 3}}, "tokens": {"adapt": {"in": 1200, "out": None}}}
    words = describe_cost({**metrics, "usd": {"adapt": None}}, {"after": cost, "before": None})
    assert words == (
        "adapting 3 calls, 1,200 tokens in, n/a tokens out, dollars n/a; "
        "a query 1 call, 10 tokens in, 2 tokens out, $0.5"
    )


def test_the_base_has_the_samples_of_the_run_and_none_of_its_method():
    command = "ace-bench run task=formula method=ace +method.x=1 method.y=2 'limit={test: 3}' seed=1"
    assert command_of_base(command) == "ace-bench run task=formula 'limit={test: 3}' seed=1 method=base"
    assert command_of_base(None) == "the same command with method=base"
    for foreign in ("rm -rf ~ ; ace-bench run", 'ace-bench run "task', "sh -c x"):
        assert command_of_base(foreign) == command_of_base(None), "a folder may hold any text"


def test_one_run_says_what_it_cannot_say():
    assert "for these demonstrations and not" in limits_of_one_run({"context": {"kind": "demonstrations"}})
    assert "repeat this run" in limits_of_one_run({"drawn": "nothing", "context": {"kind": "playbook"}})
