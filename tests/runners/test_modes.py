"""Offline and online adaptation: the steps, what is validated, which context is tested, and how often all is asked."""

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


MODES = {
    "final": ("", [4], ([1, 1, 1, 1], {}, [0, 4, 4], (None, 100.0), (4, 4))),
    "before": ("mode.before=true", [4], ([1, 1, 1, 1], {}, [0, 4, 4], (0.0, 100.0), (4, 8))),
    "epochs of batches": (
        "mode.epochs=3 mode.batch_size=3",
        [],
        ([3, 1, 3, 1, 3, 1], {}, [0, 12, 12], (None, 0.0), (12, 4)),
    ),
    "best, of one": (
        "mode.select=best mode.shuffle=false mode.eval_every=1",
        [2],
        ([1, 1, 1, 1], {1: 0.0, 2: 100.0, 3: 0.0, 4: 0.0}, [0, 2, 4, 2], (None, 100.0), (4, 12)),
    ),
    "best, first of two": (
        "mode.select=best mode.shuffle=false mode.eval_every=1",
        [2, 3],
        ([1, 1, 1, 1], {1: 0.0, 2: 100.0, 3: 100.0, 4: 0.0}, [0, 2, 4, 2], (None, 100.0), (4, 12)),
    ),
    "best, last": (
        "mode.select=best mode.shuffle=false mode.eval_every=1",
        [4],
        ([1, 1, 1, 1], {1: 0.0, 2: 0.0, 3: 0.0, 4: 100.0}, [0, 4, 4, 4], (None, 100.0), (4, 12)),
    ),
    "best, none": (
        "mode.select=best mode.shuffle=false mode.eval_every=1",
        [],
        ([1, 1, 1, 1], {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0}, [0, 1, 4, 1], (None, 0.0), (4, 12)),
    ),
    "best, every third step and at the end of epochs": (
        "mode.select=best mode.shuffle=false mode.eval_every=3 mode.epochs=2",
        [],
        ([1, 1, 1, 1, 1, 1, 1, 1], {3: 0.0, 4: 0.0, 6: 0.0, 8: 0.0}, [0, 3, 8, 3], (None, 0.0), (8, 12)),
    ),
    "multiples within an epoch": (
        "mode.select=best mode.shuffle=false mode.validate=multiples mode.eval_every=3 mode.epochs=2",
        [3],
        ([1, 1, 1, 1, 1, 1, 1, 1], {3: 100.0, 7: 0.0}, [0, 3, 8, 3], (None, 100.0), (8, 8)),
    ),
    "multiples, of which none is reached": (
        "mode.select=best mode.shuffle=false mode.validate=multiples",
        [4],
        ([1, 1, 1, 1], {}, [0, 0, 4, 0], (None, 0.0), (4, 4)),
    ),
    "multiples, of which none is above zero": (
        "mode.select=best mode.shuffle=false mode.validate=multiples mode.eval_every=2",
        [3],
        ([1, 1, 1, 1], {2: 0.0, 4: 0.0}, [0, 0, 4, 0], (None, 0.0), (4, 8)),
    ),
    "online": ("mode=online mode.before=false", [2, 3], ([1, 1, 1, 1], {}, [0, 4, 4], (None, 50.0), (4, 0))),
    "online, before": ("mode=online mode.before=true", [0, 1], ([1, 1, 1, 1], {}, [0, 4, 4], (100.0, 50.0), (4, 4))),
    "online, windows": (
        "mode=online mode.before=false mode.window=2",
        [2, 3],
        ([1, 1, 1, 1], {}, [0, 4, 4], (None, 50.0), (6, 0)),
    ),
    "online, windows in batches": (
        "mode=online mode.before=false mode.window=3 mode.batch_size=2",
        [3],
        ([2, 1, 1], {}, [0, 4, 4], (None, 25.0), (5, 0)),
    ),
}
"""Settings, the sizes of playbooks with which the generator is right, and the outcome."""


@pytest.mark.parametrize(("settings", "right_at", "expected"), MODES.values(), ids=list(MODES))
def test_steps_tests_and_rollouts(settings, right_at, expected, tmp_path):
    script = Scripted(generator=right_with(*right_at), curator=lesson)
    ran = play(tmp_path, *settings.split(), "labels=none", script=script)
    assert outcome(ran) == expected


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
