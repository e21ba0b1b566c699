"""The baseline that keeps everything: whose answers are shown, and the rule by which a prompt is cut."""

import pytest

from ace_field.long_context import History, Pair
from tests.packages.field.test_stream_memory import WRONG, asked, entries, stream


@pytest.mark.parametrize("labels", ["gold", "correctness", "none"])
def test_every_question_so_far_is_shown_with_what_the_labels_reveal(labels, tmp_path):
    ran, prompts = stream(tmp_path, "long_context", f"labels={labels}")
    golds = [f"gold of toy-test-{number}" for number in range(5)]
    own = [gold if number % 2 == 0 else WRONG for number, gold in enumerate(golds)]
    verdicts = ["correct" if number % 2 == 0 else "not correct" for number in range(5)]
    shown = entries(prompts["toy-test-5"])
    assert [entry[0] for entry in shown] == asked(*range(5))
    assert [entry[1] for entry in shown] == (golds if labels == "gold" else own)
    assert [entry[2] for entry in shown if entry[2]] == (verdicts if labels == "correctness" else [])
    assert ran.metrics["operations"] == {"remembered": 6}
    assert ran.metrics["calls"]["adapt"] == {"generator": 6}


def test_a_prompt_shows_the_newest_pairs_that_fit():
    pairs = tuple(Pair(f"q{number}", f"text {number}", tokens) for number, tokens in enumerate((5, 90, 4, 6)))
    assert [pair.question for pair in History(pairs=pairs, room=10).visible().pairs] == ["q2", "q3"]
    assert [pair.question for pair in History(pairs=pairs, room=9).visible().pairs] == ["q3"]
    assert History(pairs=pairs, room=105).visible().pairs == History(pairs=pairs).visible().pairs == pairs
    assert [pair.question for pair in (History(pairs=pairs).shrink() or History()).pairs] == ["q1", "q2", "q3"]


def test_epochs_keep_each_question_once(tmp_path):
    _, prompts = stream(
        tmp_path, "long_context", "mode.epochs=3", "labels=gold", mode="offline", stage="evaluate", train=3, test=1
    )
    assert sorted(entry[0] for entry in entries(prompts["toy-test-0"])) == [f"ask toy-train-{n}?" for n in range(3)]
