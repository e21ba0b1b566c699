"""Offline and online adaptation: the steps, what is validated, which context is tested, and how often all is asked."""

from pathlib import Path

import pytest

from tests.runners.scripted import Scripted, bullets_in, gold, kept, lesson, play, right, rollouts, steps, wrong

ONLINE, BEFORE = ("mode=online", "mode.before=false"), "mode.before=true"


def right_with(*sizes):
    """A generator that is right while it learns offline and, on other splits, with playbooks of these sizes only."""

    def generator(call):
        learns = call.sample.startswith("toy-train")
        return right(call) if learns or bullets_in(call.prompt) in sizes else wrong(call)

    return generator


def outcome(ran):
    """Steps; scores of validation; bullets of contexts; scores before and after; first rollouts."""
    metrics, names = ran.metrics, ("initial", "best", "final", "tested")
    return (
        [len(step["samples"]) for step in steps(ran)],
        {seen["step"]: seen["score"] for seen in metrics["validation"]},
        [len(kept(ran, name)) for name in names if (ran.folder / "contexts" / f"{name}.json").exists()],
        (metrics["headline"]["before"], metrics["headline"]["after"]),
        tuple(sum(line["trial"] == 0 for line in rollouts(ran, stage)) for stage in ("adapt", "evaluate")),
    )


MODES = (Path(__file__).parent / "expected" / "modes.txt").read_text().splitlines()
"""Settings and the sizes of playbooks with which the generator is right, and below them the outcome."""


@pytest.mark.parametrize(("case", "expected"), [*zip(MODES[::2], MODES[1::2], strict=True)])
def test_steps_tests_and_rollouts(case, expected, tmp_path):
    settings, _, sizes = case.partition(": ")[2].partition("; right with ")
    right_at = [int(size) for size in sizes.split() if size != "none"]
    script = Scripted(generator=right_with(*right_at), curator=lesson)
    ran = play(tmp_path, *settings.split(), "labels=none", script=script)
    assert f"    {outcome(ran)}" == expected


def test_where_nothing_was_learnt_the_second_evaluation_is_the_first(tmp_path):
    ran = play(tmp_path, BEFORE, "mode.epochs=2", script=Scripted())
    assert outcome(ran) == ([1] * 8, {}, [0, 0, 0], (100.0, 100.0), (8, 4)), "each epoch makes its own rollouts"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_the_order_is_that_of_the_seed_or_of_the_file_and_the_same_for_all_methods(mode, tmp_path):
    def order(*overrides, script=None, method="ace"):
        run = (f"mode={mode}", "mode.before=false", *overrides)
        ran = play(tmp_path, *run, script=script or Scripted(curator=lesson), method=method, train=8, test=8)
        return ran, [sample for step in steps(ran) for sample in step["samples"]]

    ran, shuffled = order("seed=1")
    files = [f"toy-{'train' if mode == 'offline' else 'test'}-{number}" for number in range(8)]
    assert sorted(shuffled) == files != shuffled
    assert order("seed=1", "resume=false")[1] == shuffled != order("seed=2")[1]
    assert order("mode.shuffle=false")[1] == files
    if mode == "online":
        plain = Scripted(generator=lambda call: gold(call.sample))
        base, _ = order("seed=1", "concurrency=1", script=plain, method="base")
        assert [line["sample"] for line in rollouts(base, "evaluate")] == shuffled
        assert [line["sample"] for line in rollouts(ran, "adapt") if line["trial"] == 0] == shuffled
    else:
        epochs = order("mode.epochs=2")[1]
        assert epochs[:8] != epochs[8:], "each epoch has its own order"


@pytest.mark.parametrize("window", [1, pytest.param(3, marks=pytest.mark.slow), 10])
def test_a_window_is_predicted_under_the_context_at_its_start(window, tmp_path):
    settings = (*ONLINE, f"mode.window={window}", "labels=none")
    ran = play(tmp_path, *settings, script=Scripted(generator=wrong, curator=lesson), test=7)
    contexts = {}
    for line in rollouts(ran, "adapt"):
        if line["trial"] == 0:
            contexts.setdefault(line["sample"], line["context"])
    order = [sample for step in steps(ran) for sample in step["samples"]]
    digests = [contexts[order[0]], *(step["digest"] for step in steps(ran))]
    assert [contexts[sample] for sample in order] == [digests[place - place % window] for place in range(7)]


def test_steps_that_are_larger_than_a_window_are_refused(tmp_path, capsys):
    assert play(tmp_path, *ONLINE, "mode.batch_size=2", script=Scripted()).status == 2
    assert "where window=1 are predicted at once: set window=2" in capsys.readouterr().err
