"""Offline adaptation: epochs and batches as planned, and the context that is tested."""

import json

import pytest

from tests.runners.scripted import Scripted, bullets_in, kept, lesson, play, right, rollouts, steps, wrong


def right_with(*sizes):
    """A generator that is right on the validation and test splits with playbooks of these sizes only."""

    def generator(call):
        learning = call.sample.startswith("toy-train")
        return right(call) if learning or bullets_in(call.prompt) in sizes else wrong(call)

    return generator


def test_epochs_and_batches(tmp_path):
    ran = play(tmp_path, "mode.epochs=3", "mode.batch_size=2", script=Scripted(), train=5)
    batches = [step["samples"] for step in steps(ran)]
    assert [len(batch) for batch in batches] == [2, 2, 1] * 3
    assert [step["epoch"] for step in steps(ran)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    passes = [[sample for batch in batches[start : start + 3] for sample in batch] for start in (0, 3, 6)]
    assert all(sorted(order) == [f"toy-train-{n}" for n in range(5)] for order in passes)
    assert len({tuple(order) for order in passes}) > 1, "each epoch has its own order"
    # nothing was learnt, so the context never changes; each epoch still makes its own rollouts
    assert ran.metrics["rollouts"]["adapt"] == 15


@pytest.mark.slow
def test_the_order_is_that_of_the_seed_or_of_the_file(tmp_path):
    def order(*overrides):
        ran = play(tmp_path, *overrides, script=Scripted(), train=8)
        return [sample for step in steps(ran) for sample in step["samples"]]

    shuffled = order("seed=1")
    assert order("seed=1", "resume=false") == shuffled != order("seed=2")
    assert order("mode.shuffle=false") == [f"toy-train-{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("right_at", "best"), [((2,), 2), ((2, 3), 2), ((), 1), ((4,), 4)], ids=["one", "first of two", "none", "last"]
)
def test_select_best_tests_the_earliest_best_on_validation(right_at, best, tmp_path):
    script = Scripted(generator=right_with(*right_at), curator=lesson)
    ran = play(tmp_path, "mode.select=best", "mode.eval_every=1", script=script)
    assert len(kept(ran, "best")) == len(kept(ran, "tested")) == best
    assert len(kept(ran, "final")) == 4
    assert len(kept(ran, "initial")) == 0
    assert [seen["step"] for seen in ran.metrics["validation"]] == [1, 2, 3, 4]
    assert [seen["score"] for seen in ran.metrics["validation"]] == [100.0 * (n in right_at) for n in (1, 2, 3, 4)]
    assert ran.metrics["headline"]["after"] == (100.0 if right_at else 0.0)
    assert ran.metrics["context"]["items"] == best


def test_validation_is_looked_at_every_n_steps_and_after_each_epoch(tmp_path):
    script = Scripted(curator=lesson)
    ran = play(tmp_path, "mode.select=best", "mode.eval_every=3", "mode.epochs=2", script=script)
    assert [seen["step"] for seen in ran.metrics["validation"]] == [3, 4, 6, 8]


def test_select_final_needs_no_validation(tmp_path):
    ran = play(tmp_path, script=Scripted(curator=lesson))
    assert ran.metrics["validation"] == []
    assert not (ran.folder / "contexts" / "best.json").exists()
    assert json.loads((ran.folder / "contexts" / "tested.json").read_text())["bullets"] == kept(ran)
    assert {line["split"] for line in rollouts(ran, "evaluate")} == {"test"}


def test_before_and_after_share_nothing_but_the_samples(tmp_path):
    script = Scripted(generator=right_with(4), curator=lesson)
    ran = play(tmp_path, "mode.before=true", script=script)
    headline = ran.metrics["headline"]
    assert (headline["before"], headline["after"]) == (0.0, 100.0)
    assert ran.metrics["splits"]["test"]["before"] == {"n": 4, "faults": 0, "accuracy": 0.0}
    assert ran.metrics["rollouts"]["evaluate"] == 8


def test_where_nothing_was_learnt_the_second_evaluation_is_the_first(tmp_path):
    ran = play(tmp_path, "mode.before=true", script=Scripted())
    assert ran.metrics["rollouts"]["evaluate"] == 4
    assert ran.metrics["headline"]["before"] == ran.metrics["headline"]["after"] == 100.0
