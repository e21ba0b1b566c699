"""StreamBench's memories and long context: what is stored, what a sample is shown, and in which order."""

from functools import partial

import pytest

from ace_field.long_context import History, Pair
from tests.launching import launch
from tests.packages.field.making import Themed, even_right_as_text, learn, prompts_of, shown

stream = partial(learn, generator=even_right_as_text)


def test_the_most_similar_questions_are_shown_in_the_order_that_is_set(tmp_path):
    def numbers(order):
        settings = ("labels=correctness", "method.top_k=3", f"method.order={order}")
        return shown(
            prompts_of(stream(tmp_path / order, "mem_prompt", *settings, task=Themed, test=9)[1])["toy-test-8"]
        )

    last, first, shuffled = map(numbers, ("similar_last", "similar_first", "random"))
    assert [number % 2 for number in last] == [0] * 3
    assert first == last[::-1]
    assert sorted(shuffled) == sorted(last)


@pytest.mark.parametrize("other", [(), ("sampling.generator_2.temperature=1",)])
def test_a_run_says_if_one_model_answers_in_every_turn(other, tmp_path, capsys):
    settings = ("task=ddxplus", "task.source=sample", "mode=online", "limit=1", "labels=correctness", *other)
    assert launch(tmp_path, "method=mam_stream_icl", *settings).status == 0
    assert ("one model answers every sample" in capsys.readouterr().out.replace("\n", " ")) == (not other)


def test_a_prompt_shows_the_newest_pairs_that_fit():
    pairs = tuple(Pair(f"q{number}", f"text {number}", tokens) for number, tokens in enumerate((5, 90, 4, 6)))
    assert [pair.question for pair in History(pairs=pairs, room=10).visible().pairs] == ["q2", "q3"]
    assert [pair.question for pair in History(pairs=pairs, room=9).visible().pairs] == ["q3"]
    assert History(pairs=pairs, room=105).visible().pairs == History(pairs=pairs).visible().pairs == pairs
    for size, left in ((8, 6), (5, 3), (4, 3), (1, 0)):
        assert len(History(pairs=(pairs * 2)[:size]).shrink().pairs) == left
    assert History().shrink() is None
