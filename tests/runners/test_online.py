"""Online adaptation: one seeded order for all methods; predict and score, then learn."""

import pytest

from tests.runners.scripted import (
    Scripted,
    answer,
    bullets_in,
    gold,
    lesson,
    play,
    right,
    rollouts,
    steps,
    wrong,
)

ONLINE = ("mode=online", "mode.before=false")


def stream(tmp_path, *overrides, script, method="ace", **sizes):
    return play(tmp_path, *ONLINE, *overrides, script=script, method=method, **sizes)


def predicted_order(ran, stage):
    return [line["sample"] for line in rollouts(ran, stage) if line["trial"] == 0]


@pytest.mark.slow
def test_all_methods_see_one_order_that_the_seed_decides(tmp_path):
    files = [f"toy-test-{n}" for n in range(8)]
    text = Scripted(generator=lambda call: gold(call.sample))
    base = stream(tmp_path, "concurrency=1", script=text, method="base", test=8)
    ace = stream(tmp_path, script=Scripted(curator=lesson), test=8)
    other_seed = stream(tmp_path, "seed=1", script=Scripted(), test=8)
    order = [sample for step in steps(ace) for sample in step["samples"]]
    assert order == predicted_order(ace, "adapt") == predicted_order(base, "evaluate")
    assert sorted(order) == files != order
    assert [sample for step in steps(other_seed) for sample in step["samples"]] != order
    of_file = stream(tmp_path, "mode.shuffle=false", script=Scripted(), test=8)
    assert [sample for step in steps(of_file) for sample in step["samples"]] == files


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 3, 4, 10])
def test_a_window_is_predicted_under_the_context_at_its_start(window, tmp_path):
    script = Scripted(generator=wrong, curator=lesson)
    ran = stream(
        tmp_path, f"mode.window={window}", "method.max_reflection_rounds=1", "labels=none", script=script, test=7
    )
    assert [step["context_size"] for step in steps(ran)] == list(range(1, 8))
    order = [sample for step in steps(ran) for sample in step["samples"]]
    digests = [None, *(step["digest"] for step in steps(ran))]
    first_try = {}
    for line in rollouts(ran, "adapt"):
        if line["trial"] == 0:
            first_try.setdefault(line["sample"], line["context"])
    digests[0] = first_try[order[0]]
    for index, sample in enumerate(order):
        assert first_try[sample] == digests[index - index % window]


def test_the_prediction_counts_and_not_what_was_learnt_from_it(tmp_path):
    def generator(call):
        return right(call) if call.trial or bullets_in(call.prompt) >= 2 else wrong(call)

    ran = stream(tmp_path, "mode.window=2", script=Scripted(generator=generator, curator=lesson), test=4)
    # the first window of two has no bullets yet; all of the second is predicted with two
    assert ran.metrics["headline"]["after"] == 50.0
    assert ran.metrics["headline"]["n"] == 4
    # within a window, a sample whose context has moved on is rolled out anew to learn from
    assert len([line for line in rollouts(ran, "adapt") if line["trial"] == 0]) == 6


def test_window_of_one_learns_from_the_prediction_itself(tmp_path):
    ran = stream(tmp_path, script=Scripted(), test=4)
    assert ran.metrics["rollouts"] == {"adapt": 4, "evaluate": 0}
    assert ran.metrics["calls"]["adapt"] == {"curator": 4, "generator": 4, "reflector": 4}


def test_the_samples_of_a_window_are_learnt_from_in_batches(tmp_path, capsys):
    settings = ("mode.window=4", "mode.batch_size=2", "method.max_reflection_rounds=1")
    ran = stream(tmp_path, *settings, script=Scripted(curator=lesson), test=7)
    assert [len(step["samples"]) for step in steps(ran)] == [2, 2, 2, 1]
    assert ran.metrics["rollouts"] == {"adapt": 7 + 3, "evaluate": 0}, "the later batch of a window is rolled out anew"
    assert stream(tmp_path, "mode.batch_size=2", script=Scripted(), test=7).status == 2
    assert "set window=2" in capsys.readouterr().err


def test_before_is_scored_without_the_context_and_counted_as_evaluation(tmp_path):
    def generator(call):
        return answer(gold(call.sample)) if bullets_in(call.prompt) else wrong(call)

    script = Scripted(generator=generator, curator=lesson)
    ran = stream(tmp_path, "mode.before=true", script=script, test=4)
    assert ran.metrics["headline"]["before"] == 0.0
    assert ran.metrics["headline"]["after"] == 75.0
    assert ran.metrics["rollouts"]["evaluate"] == 4
