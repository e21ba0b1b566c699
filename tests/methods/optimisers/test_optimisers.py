"""GEPA and MIPROv2 over the arena: what they learn, see, cost, survive and leave behind."""

import inspect
import json
import random
import subprocess
import sys
from itertools import count
from threading import Barrier
from types import SimpleNamespace

import dspy
import pytest

from ace_bench.core.errors import SettingError
from ace_bench.core.method import Span
from ace_bench.methods.optimisers.gepa import Gepa
from ace_bench.methods.optimisers.mipro import Mipro
from tests.doubles import Crash, Recording, crash_after
from tests.launching import ROOT, launch
from tests.methods.playing import FAILING, context_of, knows, obedient, one_word_more, play_optimiser
from tests.runners.scripted import Scripted, events, gold, rollouts, wrong

QUICK = {"gepa": ("method.max_metric_calls=60",), "mipro": ("method.auto=light",)}
METHODS = pytest.mark.parametrize("method", QUICK)


def run(results, method, *overrides, **scripts):
    """Optimise on the toy task; by default the proposer adds word after word and the generator obeys."""
    script = Scripted(**{"generator": obedient, "proposer": one_word_more, **scripts})
    sizes = {"train": 4, "val": 4, "test": 4}
    return play_optimiser(results, method, *QUICK[method], *overrides, script=script, **sizes), script


@METHODS
def test_a_search_keeps_the_best_counts_all_and_leaves_nothing_behind(snapshot, method, tmp_path, capfd):
    """Its candidates, their scores, the calls, and what is kept are compared as a whole; DSPy prints nothing."""
    before = (dspy.settings.lm, dspy.settings.callbacks, dspy.settings.adapter, dspy.settings.num_threads)
    ran, script = run(tmp_path, method)
    printed = "".join(capfd.readouterr())
    assert [word for word in ("GEPA", "Bootstrap", "it/s", "evaluate test, after") if word in printed] == [
        "evaluate test, after"
    ]
    assert (dspy.settings.lm, dspy.settings.callbacks, dspy.settings.adapter, dspy.settings.num_threads) == before
    adapted, context = rollouts(ran, "adapt"), context_of(ran)
    assert len({(one["sample"], one["context"]) for one in adapted}) == len(adapted), "no rollout is repeated"
    found = {
        "score": ran.metrics["headline"]["after"],
        "instruction": [context["text"], *context.get("demonstrations", ())],
        "rollouts": f"{len(adapted)} of {', '.join(sorted({one['split'] for one in adapted}))}",
        "calls": ran.metrics["calls"]["adapt"],
        "sessions": ", ".join(sorted({call.session for call in script.of("proposer")})),
    }
    lines = [*(f"{name}: {value}" for name, value in found.items()), *map(json.dumps, events(ran))]
    assert "\n".join(lines) == snapshot


@METHODS
def test_the_proposer_sees_what_labels_show(method, tmp_path):
    for labels in ("gold", "correctness"):
        ran, script = run(tmp_path / labels, method, f"labels={labels}", generator=wrong)
        assert ran.status == 0
        prompts = "\n".join(call.prompt for call in script.of("proposer"))
        assert "ask toy-train-" in prompts
        assert "toy-test-" not in prompts
        assert "toy-val-" not in prompts
        assert (gold("toy-train-0") in prompts) == (labels == "gold")
        generated = "\n".join(call.prompt for call in script.of("generator"))
        assert (gold("toy-train-0") in generated) == (labels == "gold" and method == "mipro"), "labeled demonstrations"


def test_gepa_reflects_on_the_attempt_and_its_feedback(tmp_path):
    _, script = run(tmp_path, "gepa")
    first = script.of("proposer")[0].prompt
    assert '"reasoning": "thought of wrong", "answer": "wrong"' in first
    assert "The answer is not correct.\\nReference answer: gold of toy-train-" in first


def test_proposals_of_an_iteration_are_made_side_by_side(tmp_path):
    side_by_side = Barrier(3)

    def propose(call):
        if call.trial <= 3:  # the first iteration
            side_by_side.wait(timeout=10)
        return FAILING if call.trial == 2 else one_word_more(call)

    script = Scripted(generator=obedient, proposer=propose)
    settings = (
        "method.max_metric_calls=120",
        "method.proposals=3",
        "method.parents=1",
        "method.keep=1",
        "concurrency=4",
    )
    ran = play_optimiser(tmp_path, "gepa", *settings, script=script, train=9, val=4, test=4)
    assert ran.metrics["headline"]["after"] == 100.0
    found = [event["parents"] for event in events(ran) if event["event"] == "candidate"]
    assert found[:2] == [[], [0]]
    assert len(found) < len(script.of("proposer")) / 2, "one of three is kept"
    assert ran.metrics["faults"]["adapt"] == {"proposer/model/content_filter": 1}


def test_miprov2_shows_attempts_that_were_right(tmp_path):
    ran, _ = run(tmp_path, "mipro", "labels=correctness", generator=lambda call: {"final_answer": gold(call.sample)})
    demonstrations = context_of(ran)["demonstrations"]
    assert all(demo["answer"] == f"gold of {demo['question'].split()[1].strip('?')}" for demo in demonstrations)


def test_miprov2_shows_the_program_where_another_thread_disturbs_pythons_parser(tmp_path, monkeypatch):
    undisturbed, _ = run(tmp_path / "alone", "mipro")
    read, reads = inspect.getsource, count()

    def disturbed(found):
        if next(reads) == 0:
            raise SystemError("AST constructor recursion depth mismatch (before=15, after=12)")
        return read(found)

    monkeypatch.setattr(inspect, "getsource", disturbed)
    ran, script = run(tmp_path / "beside", "mipro")
    assert "class AnswerQuestion(" in "".join(call.prompt for call in script.of("proposer"))
    assert ran.lasting() == undisturbed.lasting()
    assert next(reads) > 1


def gepa(**settings):
    return Gepa(**{"auto": None, "max_metric_calls": None, "max_full_evals": None, **settings})


def test_the_heavy_budget_by_dspys_own_rule():
    for validation, calls in ((57, 1_434), (300, 3_135), (372, 3_639), (500, 4_535)):
        assert gepa(auto="heavy").metric_calls(9, validation) == calls == 7 * validation + 1_035


WORKLOADS = [  # the method, training and validation samples, rollouts and proposals: at least, and at most
    (gepa(max_metric_calls=60), 4, 4, (4 + 4, 60 + 10), (0, 18 + 1)),
    (gepa(max_metric_calls=60), 90, 4, (4 + 28, 60 + 10), (0, 18 + 1)),
    (gepa(max_full_evals=5), 10, 20, (20 + 10, 150 + 26), (0, 43 + 1)),
    (gepa(max_metric_calls=60, proposals=4, parents=2), 4, 4, (4 + 4, 60 + 40), (0, 18 + 4)),
    (gepa(max_metric_calls=60, proposals=4, keep=1), 4, 4, (4 + 4, 60 + 28), (0, 18 + 4)),
    (gepa(max_metric_calls=3), 4, 4, (4, 3 + 10), (0, 1)),
    # light: 6 candidates, 10 trials with two things to choose, 9 with one; 3 calls a candidate and 12 for the samples
    (Mipro(auto="light", bootstrapped=4, labeled=4), 5, 20, (20, 20 + 10 * 20 + 6 * 5), (0, 30)),
    (Mipro(auto="light", bootstrapped=0, labeled=0), 5, 50, (50, 50 + 9 * 50), (0, 30)),
    (Mipro(auto="light", bootstrapped=0, labeled=1), 5, 51, (51, 51 + 10 * 35 + 3 * 51 + 6 * 5), (0, 30)),
    (Mipro(auto="light", bootstrapped=0, labeled=0), 5, 999, (100, 100 + 9 * 35 + 2 * 100), (0, 30)),
]


@pytest.mark.parametrize("case", WORKLOADS, ids=lambda case: f"{type(case[0]).__name__} {case[1:]}")
def test_a_workload_follows_from_the_budget(case):
    method, train, validation, rollouts, proposals = case
    sizes = {"train": train, "val": validation}
    workload = method.workload(SimpleNamespace(samples=lambda split: range(sizes[split])), None)
    assert (workload.rollouts, workload.roles) == (Span(*rollouts), {"proposer": Span(*proposals)})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "GEPA takes one budget"),
        ({"max_metric_calls": 5, "max_full_evals": 5}, "GEPA takes one budget"),
        ({"auto": "light", "proposals": 4, "parents": 3}, "must be a multiple of parents=3"),
        ({"auto": "light", "proposals": 2, "keep": 3}, "and at least keep=3"),
        ({"auto": "light", "keep": 2}, "and at least keep=2"),
    ],
)
def test_gepa_takes_one_budget_and_proposals_that_can_be_dealt_to_parents_and_kept(settings, says):
    with pytest.raises(SettingError, match=says):
        gepa(**settings)


@pytest.mark.slow
@METHODS
@pytest.mark.parametrize("reply", [FAILING, "", "no form at all", '{"new_instruction": ["a", {}]}', "{" * 5_000])
def test_a_proposer_that_fails_costs_proposals_and_never_the_run(method, reply, tmp_path):
    ran, script = run(tmp_path, method, proposer=lambda _: reply)
    assert ran.status == 0
    assert ran.metrics["headline"]["after"] == 0.0
    assert knows(f"<instruction>{context_of(ran)['text']}</instruction>") == 0
    failed = {**ran.metrics["faults"]["adapt"], **ran.metrics["unreadable_replies"]["adapt"]}
    assert sum(failed.values()) > 0
    assert len(script.of("proposer")) < 200


@METHODS
def test_an_attempt_that_fails_scores_nothing_and_is_told_of(method, tmp_path):
    ran, script = run(tmp_path, method, generator=lambda c: FAILING if c.sample == "toy-train-3" else obedient(c))
    assert ran.status == 0
    assert ran.metrics["headline"]["after"] >= 75.0
    assert ran.metrics["faults"]["adapt"]["generator/model/content_filter"] > 0
    if method == "gepa":
        assert any("The attempt failed: content_filter: I will not" in call.prompt for call in script.of("proposer"))


@pytest.mark.slow
@METHODS
def test_a_budget_stops_it_cleanly_and_more_budget_continues_to_the_same_end(method, tmp_path):
    whole, _ = run(tmp_path / "whole", method)
    calls = len(whole.lines("calls"))
    for limit in (3, calls // 2, calls - 2):
        stopped, _ = run(tmp_path / "cut", method, f"budget.calls={limit}")
        assert stopped.status == 3
        assert len(stopped.lines("calls")) == limit
    continued, _ = run(tmp_path / "cut", method)
    assert continued.status == 0
    assert len(continued.lines("calls")) == calls
    assert continued.lasting() == whole.lasting()


@METHODS
def test_a_mistake_in_the_harness_is_not_taken_for_a_bad_score(method, tmp_path):
    def broken(call):
        if call.sample.startswith("toy-val"):
            raise ZeroDivisionError("a bug")
        return obedient(call)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(tmp_path, method, generator=broken)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "more"), [("gepa", ()), ("gepa", ("method.proposals=3",)), ("mipro", ())], ids=str)
def test_killed_in_any_call_and_continued_it_makes_no_call_twice(method, more, tmp_path):
    settings = ("task=formula", "task.source=sample", f"method={method}", *QUICK[method], "limit=4", "concurrency=3")
    settings = (*settings, *more)
    made = []
    whole = launch(tmp_path / "whole", *settings, backbone=lambda inner: Recording(inner, made))
    total, rng = len(made), random.Random(7)
    made = []
    for _ in range(40):
        dies = crash_after(rng.randrange(1, 20))
        try:
            cut = launch(
                tmp_path / "cut", *settings, backbone=lambda inner, dies=dies: Recording(inner, made, before=dies)
            )
            break
        except Crash:
            pass
    assert len(made) == total
    assert cut.lasting() == whole.lasting()


def test_dspy_is_not_imported_before_it_is_needed():
    code = (
        "import sys, ace_bench.methods.optimisers.gepa, ace_bench.methods.optimisers.mipro;"
        "sys.exit(any(name in sys.modules for name in ('dspy', 'gepa', 'optuna')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
