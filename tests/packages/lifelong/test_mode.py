"""A life of several stages: what it learns and tests, in which order, and how it continues."""

from pathlib import Path

import pytest

from ace_bench.report.records import read_run
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.code import code_of
from ace_bench.tasks.catalog import make_task
from ace_lifelong.stages import divide
from tests.expected import check
from tests.interference import Pair
from tests.launching import composed, launch, quick
from tests.runners.scripted import Toy

LIFE = ("task=stream", "mode=lifelong", "mode.stages=[finer,formula]", "limit=12")


ONE_TASK = ("mode=lifelong", "limit=30", "mode.fresh=false", "method=dc")
LIVES = {
    "tasks": LIFE,
    "tasks_in_another_order": (*LIFE, "mode.order=[formula,finer]"),
    "databases": (*ONE_TASK, "task=bird_sql", "limit=null", "mode.stage_limit=9"),
    "answers": (*ONE_TASK, "task=ddxplus", "mode.by=answer", "mode.parts=3"),
    "answers_shuffled": (*ONE_TASK, "task=finer", "mode.by=answer", "mode.parts=2", "mode.order_seed=1"),
    "optimiser": (*LIFE, "limit=4", "method=icl", "mode.fresh=false"),
}


@pytest.mark.parametrize("name", LIVES)
def test_what_is_learnt_and_tested(name, tmp_path):
    """A stage learnt afresh scores as if it came first, in the files of both orders; icl is fitted once a stage."""
    ran = launch(tmp_path, *LIVES[name])
    found = ran.metrics["lifelong"]
    lines = [f"by {found['by']}: {', then '.join(found['order'])}"]
    lines += [f"{name}: {one['learnt']} learnt, {len(one['tested'])} tested" for name, one in found["stages"].items()]
    for row in found["tests"]:
        lines.append(f"{row['after']}: {row['scores']}, {row['items']} items of {row['tokens']} tokens")
    taken = [line for line in ran.lines("journal") if line["kind"] == "step"]
    shown = [event["of"] for step in taken for event in step["events"] if "of" in event]
    lines.append(f"{len(taken)} steps of {sum(len(step['samples']) for step in taken)} samples, chosen of {shown}")
    scores = {key: score for key, score in ran.metrics["splits"]["test"]["after"].items() if "score" in key}
    lines.append(f"result: {scores or ran.metrics['headline']['after']}, collapsed: {read_run(ran.folder).collapsed}")
    check("\n".join(lines) + "\n", Path(__file__).parent / "expected" / f"{name}.txt")


SLOW = [
    pytest.param(method, (0.2, 0.5, 0.8), marks=pytest.mark.slow) for method in ("dc", "mam_stream_icl", "icl", "gepa")
]


@pytest.mark.parametrize(("method", "shares"), [("ace", (0.5,)), *SLOW])
def test_a_life_that_was_cut_ends_as_one_that_was_not(method, shares, tmp_path):
    settings = (*LIFE, "limit=4", f"method={method}", *quick(method))
    whole = launch(tmp_path / "whole", *settings)
    calls = len(whole.lines("calls"))
    for share in shares:
        assert launch(tmp_path / "cut", *settings, f"budget.calls={int(share * calls)}").status == 3
    assert launch(tmp_path / "cut", *settings).lasting() == whole.lasting()


def test_a_sample_with_several_answers_goes_where_most_of_them_are():
    task = make_task("finer", sample_allowed=True, source="sample")
    division = divide(task, ("train", "test"), "answer", 3)
    for sample in task.samples("test"):
        labels = [label.strip() for label in task.failing_grade(sample).gold.split(",")]
        held = {name: sum(label in values for label in labels) for name, values in division.holds.items()}
        assert held[division.stage_of[sample.id]] == max(held.values())


@pytest.mark.parametrize(("parts", "sizes"), [(2, [4, 4]), (3, [3, 3, 2]), (5, [2, 2, 1, 2, 1]), (8, [1] * 8)])
def test_parts_have_about_equal_size_and_none_is_empty(parts, sizes):
    division = divide(Toy(), ("train", "test"), "answer", parts)
    assert [len(values) for values in division.holds.values()] == sizes
    assert [*division.holds] == [f"answer{number}" for number in range(1, parts + 1)]


def test_the_code_of_all_tasks_of_a_stream_counts():
    config = settle(*composed(*LIFE)).settings
    assert {"ace_bench.tasks.finer", "ace_bench.tasks.formula", "ace_lifelong.stages"} <= {*code_of(config).modules}


@pytest.mark.slow
def test_an_estimate_counts_each_fit():
    def rollouts(*settings):
        spec = assemble(identify(settle(*composed(*LIFE, "method=gepa", "method.max_metric_calls=30", *settings))))
        estimate = rehearse(spec)
        return estimate.low.calls, estimate.high.calls

    (low, three), (same, two) = rollouts(), rollouts("mode.fresh=false")
    assert three > 1.3 * two
    assert low == same


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("task=stream", "mode.stages=[finer]"), "two or more different"),
        (("task=stream", "mode.stages=[finer,formula]", "task.tasks=[finer,finer]"), "two or more different tasks"),
        (("task=stream", "mode.stages=[finer,nosuch]"), "there is no task nosuch"),
        (("task=stream", "mode.stages=[finer,appworld]"), "is solved by agent=react"),
        (("task=bird_sql", "mode.stages=[garden_shop,moon]"), "mode.stages names moon"),
        (("task=bird_sql", "mode.order=[garden_shop]"), "must name each of the stages once"),
        (("task=bird_sql", "mode.order=[garden_shop,sports_club]", "mode.order_seed=1"), "leave one out"),
        (("task=ddxplus",), "must know what a stage is: choose mode.by of answer"),
        (("task=finer", "mode.by=background"), "there is one stage"),
        (("task=ddxplus", "mode.by=answer", "mode.parts=99"), "mode.parts=99 must be"),
        (("task=ddxplus", "mode.by=answer", "limit=3"), "raise limit (or set mode.stage_limit"),
        (("task=bird_sql", "method=reflexion"), "use mode=online"),
        (("task=bird_sql", "method=icl", "mode.learnt_split=test"), "use mode.learnt_split=train"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_the_first_call(settings, says, tmp_path, capsys):
    assert launch(tmp_path, "mode=lifelong", *settings).status == 2
    assert says in capsys.readouterr().err
    assert not [*tmp_path.rglob("calls.jsonl")]


@pytest.mark.parametrize(("labels", "hides"), [("none", (True, True)), ("correctness", (True, False))])
def test_what_labels_hide_changes_no_message(labels, hides, tmp_path):
    pair = Pair(folder=tmp_path, settings=(*LIFE, "limit=4", "concurrency=1", f"labels={labels}"), seen=None)
    (_, first), (_, other) = pair.sent("first"), pair.sent("other", hides=lambda _: hides)
    assert first
    assert first == other
