"""ACE's step: curation, the order of a batch, the ablation switches, the start, and who is asked."""

import re
import time

import pytest

from ace_bench.ace.ablations import RewriterReply
from ace_bench.ace.replies import CuratorReply, ReflectorReply
from ace_bench.agents.single_turn import GeneratorReply
from ace_bench.core.replies import schema_of
from tests.doubles import Recording
from tests.launching import launch
from tests.methods.playing import ONE, starting_from
from tests.runners.scripted import (
    Scripted,
    answer,
    delta,
    events,
    gold,
    kept,
    lesson,
    play,
    reflection,
    right,
    steps,
    wrong,
)


@pytest.mark.slow
def test_the_deltas_of_a_batch_merge_in_sample_order_whoever_is_first(tmp_path):
    def run(results, slowest_first, concurrency):
        def curator(call):
            place = int(call.sample[-1])
            time.sleep(0.01 * (6 - place if slowest_first else place))
            return lesson(call)

        settings = ("mode.batch_size=3", "mode.shuffle=false", f"concurrency={concurrency}")
        return play(results, *settings, script=Scripted(curator=curator), train=6)

    runs = [run(tmp_path / "a", True, 3), run(tmp_path / "b", False, 3), run(tmp_path / "c", True, 1)]
    assert [len(steps(ran)) for ran in runs] == [2, 2, 2]
    for ran in runs:
        assert [bullet["sources"] for bullet in kept(ran)] == [[f"toy-train-{n}"] for n in range(6)]
        assert [bullet["created"] for bullet in kept(ran)] == [0, 0, 0, 1, 1, 1]
        assert ran.lasting() == runs[0].lasting()


def test_a_batch_is_attempted_under_one_context(tmp_path):
    script = Scripted(curator=lesson)
    play(tmp_path, "mode.batch_size=3", script=script, train=3, test=1)
    assert all("(empty)" in call.prompt for call in script.of("generator") if "train" in call.sample)
    assert all("(empty)" in call.prompt for call in script.of("curator"))


@pytest.mark.parametrize(("labels", "shown"), [("gold", True), ("correctness", False), ("none", False)])
def test_without_a_reflector_the_curator_sees_the_bare_attempt(labels, shown, tmp_path):
    script = Scripted(generator=wrong)
    ran = play(tmp_path, "method.reflector=off", f"labels={labels}", script=script, **ONE)
    assert ran.metrics["calls"]["adapt"] == {"curator": 1, "generator": 1}
    (curator,) = script.of("curator")
    assert "thought of wrong on toy-train-0" in curator.prompt
    assert (gold("toy-train-0") in curator.prompt) is shown
    assert ("The answer is not correct." in curator.prompt) is (labels != "none")


@pytest.fixture
def initial(tmp_path):
    bullets = "[str-00007] helpful=2 harmful=1 :: keep calm\n\n## OTHERS\n[oth-00003] helpful=0 harmful=0 :: carry on"
    return starting_from(tmp_path, f"## STRATEGIES\n{bullets}\nover two lines\n")


def rewriting(*texts):
    said = iter(texts)
    return lambda _: {"playbook": next(said)}


def test_a_rewrite_replaces_everything_and_numbers_go_on(initial, tmp_path):
    text = "loose words\n(strategies) one entry\nthat goes on\n[str-00007] (others) another"
    script = Scripted(curator=rewriting(text))
    ran = play(tmp_path, "method.update=rewrite", initial, script=script, **ONE)
    assert [(bullet["id"], bullet["section"], bullet["content"]) for bullet in kept(ran)] == [
        ("others-00008", "others", "loose words"),
        ("strate-00009", "strategies", "one entry\nthat goes on"),
        ("others-00010", "others", "another"),
    ]
    assert "keep calm" in script.of("curator")[0].prompt


def test_the_rewrites_of_a_batch_follow_one_another(tmp_path):
    script = Scripted(curator=rewriting("(others) first", "(others) second"))
    ran = play(tmp_path, "method.update=rewrite", "mode.batch_size=2", script=script, train=2)
    assert [bullet["content"] for bullet in kept(ran)] == ["second"]
    assert "first" in script.of("curator")[1].prompt


@pytest.mark.parametrize("said", [{"playbook": ""}, {"playbook": " \n"}, "no JSON"])
def test_an_empty_or_unreadable_rewrite_changes_nothing(said, initial, tmp_path):
    ran = play(tmp_path, "method.update=rewrite", initial, script=Scripted(curator=lambda _: said), **ONE)
    assert [bullet["id"] for bullet in kept(ran)] == ["oth-00003", "str-00007"]
    unread = {} if isinstance(said, dict) else {"curator": 1}
    assert ran.metrics["unreadable_replies"]["adapt"] == unread


def test_a_playbook_in_the_official_text_format_is_the_start_and_its_ids_go_on(initial, tmp_path):
    ran = play(tmp_path, initial, script=Scripted(curator=lesson), train=2)
    assert [bullet["id"] for bullet in kept(ran)] == ["oth-00003", "str-00007", "others-00008", "others-00009"]
    old = kept(ran)[:2]
    assert (old[1]["helpful"], old[1]["harmful"]) == (2, 1)
    assert old[0]["content"] == "carry on\nover two lines"
    assert kept(ran, "initial") == old


def test_a_saved_playbook_warms_up_an_online_run(tmp_path):
    first = play(tmp_path, script=Scripted(curator=lesson), train=2)
    saved = first.folder / "contexts" / "final.json"
    script = Scripted(generator=right)
    online = play(tmp_path, "mode=online", "mode.before=false", f"method.initial={saved}", script=script, test=2)
    assert kept(online, "initial") == kept(first)
    assert all("lesson" in call.prompt for call in script.of("generator"))


DEEP = '{"operations": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize("said", ["mumble", '{"operations": "none"}', DEEP], ids=["text", "type", "deep"])
def test_an_unreadable_curator_costs_one_proposal(said, tmp_path):
    def curator(call):
        return said if call.sample == "toy-train-1" else delta(f"of {call.sample}")

    ran = play(tmp_path, script=Scripted(curator=curator), train=3)
    assert ran.status == 0
    assert ran.metrics["unreadable_replies"]["adapt"] == {"curator": 1}
    assert {bullet["content"] for bullet in kept(ran)} == {"of toy-train-0", "of toy-train-2"}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"type": "BURN"}, "BURN"),
        ("words", ""),
        ({"type": "ADD", "section": "poems", "content": "x"}, "there is no section 'poems'"),
        ({"type": "REMOVE", "id": "others-00001"}, "REMOVE is not enabled"),
        ({"type": "ADD", "section": "others", "content": "word " * 3000}, "tokens"),
    ],
)
def test_what_the_curator_may_not_do_is_rejected_and_the_rest_applied(operation, reason, tmp_path):
    good = delta("good")["operations"]
    ran = play(tmp_path, script=Scripted(curator=lambda _: {"operations": [operation, *good]}), **ONE)
    assert [bullet["content"] for bullet in kept(ran)] == ["good"]
    (rejected,) = [event for event in events(ran) if event["event"] == "rejected"]
    assert reason in rejected["reason"]
    assert rejected["sample"] == "toy-train-0"


def test_a_role_with_its_own_backbone_asks_that_one(tmp_path):
    asked = []

    def record(inner):
        asked.append(Recording(inner))
        return asked[-1]

    small = ("task=formula", "task.source=sample", "limit=2", "mode.epochs=1")
    ran = launch(tmp_path, *small, "backbone@roles.reflector=embedded", "roles.reflector.name=other", backbone=record)
    roles = {recorder.name: {role for role, _, _ in recorder.asked} for recorder in asked}
    assert roles == {"embedded": {"generator", "curator"}, "other": {"reflector"}}
    assert ran.metrics["roles"] == {"generator": "embedded", "reflector": "other"}
    assert launch(tmp_path, *small).folder.parent != ran.folder.parent, "another experiment"


def test_a_reflector_that_misleads_takes_over_every_nth_step(tmp_path):
    script = Scripted(generator=wrong, curator=lesson)
    ran = play(tmp_path, "method.harmful_every=3", "mode.shuffle=false", script=script, train=7, test=1)
    misled = [call for call in script.of("reflector") if "Write a harmful reflection" in call.prompt]
    assert {call.sample for call in misled} == {"toy-train-2", "toy-train-5"}
    assert len(misled) == 2 * 5
    assert len(script.of("reflector")) == 7 * 5
    assert ran.metrics["calls"]["adapt"]["curator"] == 7


def test_with_retrieval_the_generator_sees_some_bullets_and_the_curator_all(tmp_path):
    known = "".join(f"[oth-{n:05d}] know toy-train-{n}\n" for n in range(6))
    script = Scripted(curator=lesson)
    retrieval = ("method.retrieval.mode=bm25", "method.retrieval.top_k=2", "method.retrieval.duplicates=1.0")
    settings = (*retrieval, starting_from(tmp_path, f"## OTHERS\n{known}"), "method.refiner.when=never")
    ran = play(tmp_path, *settings, script=script, train=3)
    assert [step["context_size"] for step in steps(ran)] == [7, 8, 9]
    for call in script.of("generator"):
        shown = [line for line in call.prompt.splitlines() if line.startswith("[oth")]
        assert len(shown) == 2
        if "train" in call.sample:
            assert any(line.endswith(f"know {call.sample}") for line in shown)
    assert all(call.prompt.count("know toy-train-") == 6 for call in script.of("curator"))


def test_the_curator_looks_back_on_the_last_reflections_and_a_new_try_on_those_of_its_sample(tmp_path):
    def reflector(call):
        return reflection(f"insight {call.sample} {call.nth}")

    def run(results, *settings):
        script = Scripted(generator=wrong, reflector=reflector, curator=lesson)
        rounds = ("method.reflection_window=3", "method.max_reflection_rounds=4", "mode.shuffle=false")
        return script, play(results, *rounds, *settings, script=script, train=4, test=1)

    script, whole = run(tmp_path / "whole")
    shown = [re.findall(r"insight toy-train-(\d) (\d)", call.prompt) for call in script.of("curator")]
    last = [("0", "3"), ("1", "3"), ("2", "3"), ("3", "3")]
    assert shown == [last[:1], last[:2], last[:3], last[1:4]]
    fifth = next(call for call in script.of("generator") if call.sample == "toy-train-3" and call.trial == 4)
    assert re.findall(r"insight toy-train-(\d) (\d)", fifth.prompt) == [("3", "1"), ("3", "2"), ("3", "3")]

    _, cut = run(tmp_path / "cut", "budget.calls=20")
    assert cut.status == 3
    _, continued = run(tmp_path / "cut", "budget.calls=null")
    assert continued.folder == cut.folder
    assert continued.lasting() == whole.lasting()


def test_reflections_that_were_looked_back_on_do_not_travel_to_another_run(tmp_path):
    script = Scripted(generator=wrong, reflector=lambda _: reflection("the old gold"), curator=lesson)
    ran = play(tmp_path, "method.reflection_window=3", script=script, **ONE)
    final = ran.folder / "contexts" / "final.json"
    assert "the old gold" in final.read_text()
    again = Scripted(generator=wrong, curator=lesson)
    play(tmp_path / "again", "method.reflection_window=3", f"method.initial={final}", script=again, **ONE)
    assert not any("the old gold" in call.prompt for _, call in again.calls)


@pytest.mark.parametrize("reply", [GeneratorReply, ReflectorReply, CuratorReply, RewriterReply])
def test_a_model_under_constrained_decoding_reasons_before_it_answers(reply):
    assert next(iter(schema_of(reply)["properties"])) == "reasoning"


HELPFUL = re.compile(r"str-00007: helpful (\d)")


def citing(call):
    return answer(f"wrong on {call.sample}", "str-00007")


def test_tags_count_after_the_step(initial, tmp_path):
    script = Scripted(generator=citing, reflector=lambda _: reflection(str_00007="helpful"))
    ran = play(tmp_path, "method.max_reflection_rounds=3", initial, script=script, **ONE)
    learning = [call for call in script.of("generator") if "train" in call.sample]
    assert [HELPFUL.search(call.prompt)[1] for call in learning] == ["2", "2", "2", "2"]
    (curator,) = script.of("curator")
    assert HELPFUL.search(curator.prompt)[1] == "5"
    assert [bullet["helpful"] for bullet in kept(ran)] == [0, 5], "each tag counts once"


def test_the_curator_counts_the_steps_of_the_run(tmp_path):
    script = Scripted()
    ran = play(tmp_path, "mode.epochs=2", script=script, train=2)
    assert len(steps(ran)) == 4
    shown = [re.search(r"\d+ of \d+", call.prompt)[0] for call in script.of("curator")]
    assert shown == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
