"""StreamBench's memories: what is stored, what a sample is shown, and in which order."""

import pytest

from tests.launching import launch
from tests.methods.playing import context_of
from tests.packages.field.making import BROKEN, TOO_LONG, Themed
from tests.runners.scripted import Scripted, Toy, answer, gold, play, rollouts, steps

WRONG = "a guess"


def even_right(call):
    """Right on samples with even numbers."""
    return gold(call.sample) if int(call.sample[-1]) % 2 == 0 else WRONG


def stream(tmp_path, method, *overrides, generator=even_right, test=6, task=Toy, mode="online", stage="adapt", **sizes):
    script = Scripted(generator=generator)
    settings = (f"mode={mode}", "mode.before=false", "labels=correctness", "mode.shuffle=false", *overrides)
    ran = play(tmp_path, *settings, script=script, method=method, task=task, test=test, **sizes)
    assert ran.status == 0
    calls = script.of("generator")
    return ran, {call.sample: call.prompt for call in calls if call.session.startswith(stage)}


def entries(prompt):
    """Question, answer and verdict of each entry in a prompt, in order."""
    text = prompt.partition("<past_answers>\n")[2].partition("\n</past_answers>")[0]
    return [
        tuple(line.partition(": ")[2] for line in (*entry.split("\n"), "")[:3])
        for entry in filter(None, text.split("\n\n"))
    ]


def asked(*numbers):
    return [f"ask toy-test-{number}?" for number in numbers]


def test_self_stream_icl_stores_right_answers_only_and_names_no_verdict(tmp_path):
    ran, prompts = stream(tmp_path, "self_stream_icl")
    assert {entry[:2] for entry in entries(prompts["toy-test-5"])} == {
        (f"ask toy-test-{number}?", f"gold of toy-test-{number}") for number in (0, 2, 4)
    }
    assert {entry[2] for entry in entries(prompts["toy-test-5"])} == {""}
    assert [entry["correct"] for entry in context_of(ran)["entries"]] == [True] * 3
    assert ran.metrics["operations"] == {"remembered": 3, "skipped": 3}
    assert ran.metrics["calls"]["adapt"] == {"generator": 6}


def test_mem_prompt_stores_right_and_wrong_answers_with_their_verdict(tmp_path):
    _, prompts = stream(tmp_path, "mem_prompt")
    found = {entry[0]: entry[1:] for entry in entries(prompts["toy-test-5"])}
    assert found["ask toy-test-4?"] == ("gold of toy-test-4", "correct")
    assert found["ask toy-test-3?"] == (WRONG, "not correct")
    assert len(found) == 5


def test_without_entries_the_prompt_is_that_of_the_task_alone(tmp_path):
    _, prompts = stream(tmp_path, "mem_prompt", test=1)
    assert prompts == {"toy-test-0": "Toy.ask toy-test-0?"}


def test_grow_prompt_shows_the_latest_the_oldest_first(tmp_path):
    ran, prompts = stream(tmp_path, "grow_prompt", "method.top_k=2")
    assert [entry[0] for entry in entries(prompts["toy-test-5"])] == asked(3, 4)
    assert [entry["question"] for entry in context_of(ran)["entries"]] == asked(4, 5)


@pytest.mark.parametrize(("shown", "numbers"), [("correct", (2, 4)), ("incorrect", (3,))])
def test_only_entries_with_the_wanted_verdict_of_those_found_are_shown(shown, numbers, tmp_path):
    _, prompts = stream(tmp_path, "grow_prompt", "method.top_k=3", f"method.shown={shown}")
    assert [entry[0] for entry in entries(prompts["toy-test-5"])] == asked(*numbers)


def test_the_most_similar_questions_are_shown_in_the_order_that_is_set(tmp_path):
    def numbers(order):
        _, prompts = stream(
            tmp_path / order, "mem_prompt", "method.top_k=3", f"method.order={order}", task=Themed, test=9
        )
        return [entry[0] for entry in entries(prompts["toy-test-8"])]

    last, first, shuffled = map(numbers, ("similar_last", "similar_first", "random"))
    assert all("tin" in question for question in last)
    assert first == last[::-1]
    assert sorted(shuffled) == sorted(last)


def by_roles(answers=gold):
    """Scripts of three models, whose answers name the model where they are wrong."""
    names = ("generator", "generator_2", "generator_3")
    return {name: lambda call, name=name: answers(call.sample) or f"{name} guesses" for name in names}


def test_models_take_turns_from_the_second_on_and_share_one_memory(tmp_path):
    script = Scripted(**by_roles(lambda sample: gold(sample) if int(sample[-1]) < 2 else None))
    settings = ("mode=online", "mode.before=true", "mode.shuffle=false", "labels=correctness")
    ran = play(tmp_path, *settings, script=script, method="mam_stream_icl", test=5)
    turns = ["generator_2", "generator_3", "generator", "generator_2", "generator_3"]
    for stage in ("evaluate", "adapt"):
        lines = rollouts(ran, stage)
        assert {line["sample"]: line["role"] for line in lines} == {
            f"toy-test-{place}": role for place, role in enumerate(turns)
        }
        assert ran.metrics["calls"][stage] == {"generator_2": 2, "generator_3": 2, "generator": 1}
    last = script.of("generator_3")[-1]
    assert {entry[0] for entry in entries(last.prompt)} == set(asked(0, 1))


def test_turns_go_on_over_batches_and_epochs_and_begin_anew_in_a_test(tmp_path):
    settings = ("mode.batch_size=2", "mode.epochs=2", "mode.shuffle=false", "labels=correctness")
    ran = play(tmp_path, *settings, script=Scripted(**by_roles()), method="mam_stream_icl", train=4, test=3)
    learnt = {line["key"].split("/")[1] + line["sample"][-1]: line["role"] for line in rollouts(ran, "adapt")}
    turns = ["generator_2", "generator_3", "generator"]
    assert learnt == {f"epoch{place // 4}{place % 4}": turns[place % 3] for place in range(8)}
    assert [line["role"] for line in sorted(rollouts(ran, "evaluate"), key=lambda one: one["sample"])] == turns


def test_a_fault_counts_for_the_model_whose_turn_it_was(tmp_path):
    script = Scripted(**{**by_roles(), "generator_3": lambda _: BROKEN})
    settings = ("mode=online", "mode.before=false", "labels=correctness")
    ran = play(tmp_path, *settings, script=script, method="mam_stream_icl", test=6)
    assert ran.metrics["faults"]["adapt"] == {"generator_3/model/content_filter": 2}


@pytest.mark.parametrize(
    "other", [(), ("backbone@roles.generator_3=embedded",), ("sampling.generator_2.temperature=1",)]
)
def test_a_run_says_if_one_model_answers_in_every_turn(other, tmp_path, capsys):
    settings = ("task=ddxplus", "task.source=sample", "mode=online", "limit=1", "labels=correctness", *other)
    assert launch(tmp_path, "method=mam_stream_icl", *settings).status == 0
    assert ("one model answers every sample" in capsys.readouterr().out.replace("\n", " ")) == (not other)


def test_a_failed_rollout_is_not_stored(tmp_path):
    ran, _ = stream(tmp_path, "mem_prompt", generator=lambda call: BROKEN if call.sample.endswith("0") else WRONG)
    assert ran.metrics["operations"] == {"remembered": 5, "skipped": 1}


def test_a_batch_is_answered_under_the_memory_before_it(tmp_path):
    ran, prompts = stream(tmp_path, "mem_prompt", "mode.batch_size=3", mode="offline", train=6, test=1)
    first, second = (step["samples"] for step in steps(ran)[:2])
    assert all(entries(prompts[sample]) == [] for sample in first)
    assert all(len(entries(prompts[sample])) == 3 for sample in second)


@pytest.mark.parametrize(("protocol", "kept"), [("ours", 4), ("authors", 12)])
def test_a_question_that_comes_again_replaces_its_entry_except_for_the_authors(protocol, kept, tmp_path):
    settings = ("mode.epochs=3", f"method.protocol={protocol}")
    ran, _ = stream(tmp_path, "mem_prompt", *settings, mode="offline", train=4, test=1)
    assert len(context_of(ran)["entries"]) == kept


@pytest.mark.parametrize("protocol", ["ours", "authors"])
def test_only_the_authors_keep_the_reasoning_before_an_answer(protocol, tmp_path):
    settings = ("agent.scaffold=json", f"method.protocol={protocol}")
    _, prompts = stream(tmp_path, "grow_prompt", *settings, generator=lambda _: answer("4"), test=2)
    reasoning = "Rationale: thought of 4\n" if protocol == "authors" else ""
    assert f"Question: ask toy-test-0?\n{reasoning}Answer: 4\nFeedback: not correct" in prompts["toy-test-1"]


def test_a_prompt_that_is_too_long_loses_the_least_similar_entries(tmp_path):
    def cramped(call):
        return TOO_LONG if len(entries(call.prompt)) > 2 else WRONG

    ran, prompts = stream(tmp_path, "mem_prompt", generator=cramped, task=Themed, test=8)
    kept = [entry[0] for entry in entries(prompts["toy-test-7"])]
    assert len(kept) == 2
    assert all("violins" in question for question in kept)
    assert ran.metrics["faults"]["adapt"] == {}


def test_a_saved_memory_shows_the_same_under_the_method_frozen(tmp_path):
    settings = {"mode": "offline", "stage": "evaluate", "task": Themed}
    ran, shown = stream(tmp_path, "self_stream_icl", "method.top_k=2", train=8, test=4, **settings)
    saved = ran.folder / "contexts" / "final.json"
    settings = ("task=formula", "task.source=sample", "method=frozen", "mode=evaluate", f"mode.context={saved}")
    script = Scripted(generator=even_right)
    again = launch(tmp_path, *settings, backbone=lambda _: script, task=lambda _: Themed(test=4))
    assert again.status == 0
    assert {call.sample: call.prompt for call in script.of("generator")} == shown
    assert all(len(entries(prompt)) == 2 for prompt in shown.values())
