"""StreamBench's memories and long context: what is stored, what a sample is shown, and in which order."""

from functools import partial

import pytest

from ace_field.long_context import History, Pair
from tests.launching import launch
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, Themed, even_right, even_right_as_text, learn, prompts_of, shown
from tests.runners.scripted import gold, rollouts

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


def by_roles(answers=gold):
    """Scripts of three models, whose answers name the model where they are wrong."""
    names = ("generator", "generator_2", "generator_3")
    return {name: lambda call, name=name: answers(call.sample) or f"{name} guesses" for name in names}


def test_models_take_turns_from_the_second_on_and_share_one_memory(tmp_path):
    roles = by_roles(lambda sample: gold(sample) if int(sample[-1]) < 2 else None)
    ran, script = learn(tmp_path, "mam_stream_icl", "labels=correctness", "mode.before=true", test=5, **roles)
    turns = ["generator_2", "generator_3", "generator", "generator_2", "generator_3"]
    for stage in ("evaluate", "adapt"):
        found = {line["sample"]: line["role"] for line in rollouts(ran, stage)}
        assert found == {f"toy-test-{place}": role for place, role in enumerate(turns)}
        assert ran.metrics["calls"][stage] == {"generator_2": 2, "generator_3": 2, "generator": 1}
    assert sorted(shown(script.of("generator_3")[-1].prompt)) == [0, 1]


def test_turns_go_on_over_batches_and_epochs_and_begin_anew_in_a_test(tmp_path):
    settings = ("mode.batch_size=2", "mode.epochs=2", "labels=correctness")
    ran, _ = learn(tmp_path, "mam_stream_icl", *settings, mode="offline", train=4, test=3, **by_roles())
    learnt = {line["key"].split("/")[1] + line["sample"][-1]: line["role"] for line in rollouts(ran, "adapt")}
    turns = ["generator_2", "generator_3", "generator"]
    assert learnt == {f"epoch{place // 4}{place % 4}": turns[place % 3] for place in range(8)}
    assert [line["role"] for line in sorted(rollouts(ran, "evaluate"), key=lambda one: one["sample"])] == turns


@pytest.mark.parametrize("other", [(), ("sampling.generator_2.temperature=1",)])
def test_a_run_says_if_one_model_answers_in_every_turn(other, tmp_path, capsys):
    settings = ("task=ddxplus", "task.source=sample", "mode=online", "limit=1", "labels=correctness", *other)
    assert launch(tmp_path, "method=mam_stream_icl", *settings).status == 0
    assert ("one model answers every sample" in capsys.readouterr().out.replace("\n", " ")) == (not other)


def test_a_fault_counts_for_the_model_whose_turn_it_was(tmp_path):
    roles = {**by_roles(lambda _: None), "generator_3": lambda _: BROKEN}
    ran, _ = learn(tmp_path, "mam_stream_icl", "labels=correctness", "method.shown=all", test=6, **roles)
    assert ran.metrics["faults"]["adapt"] == {"generator_3/model/content_filter": 2}


@pytest.mark.parametrize(
    ("method", "setting", "kept"),
    [
        ("mem_prompt", "protocol=ours", 3),
        ("mem_prompt", "protocol=authors", 9),
        ("long_context", "fill=0.5", 3),
        ("full_history", "fill=0.5", 3),
    ],
)
def test_a_question_that_comes_again_replaces_its_entry_except_for_the_authors(method, setting, kept, tmp_path):
    settings = ("labels=correctness", "mode.epochs=3", f"method.{setting}")
    generator = even_right if method == "full_history" else even_right_as_text
    ran, _ = learn(tmp_path, method, *settings, mode="offline", generator=generator, train=3, test=1)
    saved = context_of(ran)
    assert len(saved.get("entries") or saved["pairs"]) == kept


def test_a_prompt_shows_the_newest_pairs_that_fit():
    pairs = tuple(Pair(f"q{number}", f"text {number}", tokens) for number, tokens in enumerate((5, 90, 4, 6)))
    assert [pair.question for pair in History(pairs=pairs, room=10).visible().pairs] == ["q2", "q3"]
    assert [pair.question for pair in History(pairs=pairs, room=9).visible().pairs] == ["q3"]
    assert History(pairs=pairs, room=105).visible().pairs == History(pairs=pairs).visible().pairs == pairs
    for size, left in ((8, 6), (5, 3), (4, 3), (1, 0)):
        assert len(History(pairs=(pairs * 2)[:size]).shrink().pairs) == left
    assert History().shrink() is None
