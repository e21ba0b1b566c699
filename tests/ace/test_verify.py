"""Lessons that are checked: a planted world whose bullets say for which questions they are right or wrong."""

import json
import re

import pytest

from tests.doubles import Crash, Recording, crash_after
from tests.launching import launch
from tests.runners.scripted import Scripted, answer, events, gold, kept, play, rollouts

VERIFY = ("method.verify=true", "method.max_reflection_rounds=1", "mode.shuffle=false")
NUMBERS = re.compile(r"(right on|wrong on) (\d[\d ]*)")
SECTION = "strategies"


def world(knows, lessons):
    """A generator that is right on the questions ``knows`` and obeys its bullets; ``lessons`` by sample."""

    def generator(call):
        number = int(call.sample.rpartition("-")[2])
        correct = number in knows
        for effect, numbers in NUMBERS.findall(call.prompt):
            if str(number) in numbers.split():
                correct = effect == "right on"
        return answer(gold(call.sample) if correct else f"wrong on {call.sample}")

    def curator(call):
        said = lessons.get(int(call.sample.rpartition("-")[2]))
        operations = [] if said is None else [{"type": "ADD", "section": SECTION, "content": f"Bullet: {said}."}]
        return {"operations": operations}

    return Scripted(generator=generator, curator=curator)


def learn(results, *settings, knows, lessons, train=4, **played):
    script = world(knows, lessons)
    ran = play(results, *VERIFY, *settings, script=script, train=train, test=1, **played)
    return [bullet["content"] for bullet in kept(ran)], checks(ran), ran


def checks(ran):
    return [(event["sample"], event["kept"], event["reason"]) for event in events(ran) if event["event"] == "verified"]


def refusals(ran):
    return [event["reason"] for event in events(ran) if event["event"] == "rejected"]


def test_a_lesson_that_turns_its_sample_right_stays(tmp_path):
    bullets, found, ran = learn(tmp_path, knows={0, 1}, lessons={2: "right on 2"})
    assert bullets == ["Bullet: right on 2."]
    assert found == [("toy-train-2", True, "toy-train-2 turns right with it")]
    # Its own sample once, and the two samples that were right.
    assert ran.metrics["verification"] == {"kept": 1, "refused": 0, "rollouts": 3, "calls": 3}
    assert ran.metrics["operations"] == {"accepted": 1}


def test_a_lesson_that_changes_nothing_goes_and_its_votes_stay(tmp_path):
    bullets, found, ran = learn(tmp_path, knows={0, 1}, lessons={2: "right on 7"})
    assert (bullets, found) == ([], [("toy-train-2", False, "no sample turns right with it")])
    assert refusals(ran) == ["not kept by the check: no sample turns right with it"]
    assert ran.metrics["verification"] == {"kept": 0, "refused": 1, "rollouts": 1, "calls": 1}


def test_a_lesson_that_turns_a_guard_sample_wrong_goes(tmp_path):
    lesson = "right on 2; wrong on 0"
    bullets, found, _ = learn(tmp_path / "a", knows={0, 1}, lessons={2: lesson})
    assert (bullets, found) == ([], [("toy-train-2", False, "toy-train-0 turns wrong with it")])
    unguarded, _, _ = learn(tmp_path / "b", "method.guard_samples=0", knows={0, 1}, lessons={2: lesson})
    assert unguarded == [f"Bullet: {lesson}."]


def test_a_lesson_that_turns_the_two_most_alike_right_stays(tmp_path):
    both, found, _ = learn(tmp_path / "a", knows={0}, lessons={3: "right on 1 2"})
    assert (both, found[0][1]) == (["Bullet: right on 1 2."], True)
    one, found, _ = learn(tmp_path / "b", knows={0}, lessons={3: "right on 1"})
    assert (one, found[0][1]) == ([], False)


def test_a_lesson_from_a_right_attempt_needs_two_others_that_it_helps(tmp_path):
    assert learn(tmp_path / "a", knows={0, 1, 2, 3}, lessons={3: "right on 3"})[0] == []
    assert learn(tmp_path / "b", knows={0, 3}, lessons={3: "right on 1 2"})[0] == ["Bullet: right on 1 2."]


def test_a_lesson_is_not_blamed_for_a_sample_that_is_wrong_without_it_too(tmp_path):
    noticed = []
    for broken in range(4):
        # One guard sample of four: lesson 4 breaks another one unnoticed in most cases.
        lessons = {4: f"right on 4; wrong on {broken}", **{number: f"right on {number}" for number in range(5, 9)}}
        settings = ("method.guard_samples=1",)
        bullets, found, ran = learn(tmp_path / str(broken), *settings, knows={0, 1, 2, 3}, lessons=lessons, train=9)
        assert [check[1] for check in found][1:] == [True] * 4
        verdicts = dict(json.loads((ran.folder / "contexts" / "final.json").read_text())["verdicts"])
        noticed.append((len(bullets) == 5, verdicts[f"toy-train-{broken}"]))
    assert noticed.count((False, True)) == 1
    assert (True, False) in noticed


def test_the_lessons_of_a_batch_are_checked_one_after_the_other(tmp_path):
    lessons = {0: "right on 0", 1: "right on 1; wrong on 0", 2: "right on 2"}
    bullets, found, _ = learn(tmp_path, "mode.batch_size=3", knows=set(), lessons=lessons, train=3)
    assert bullets == ["Bullet: right on 0.", "Bullet: right on 2."]
    assert [check[1:] for check in found][1] == (False, "toy-train-0 turns wrong with it")


def test_online_only_samples_that_were_predicted_take_part(tmp_path):
    script = world({0, 1, 3}, {2: "right on 2; wrong on 3"})
    ran = play(tmp_path, *VERIFY, "mode=online", script=script, train=1, test=4)
    assert checks(ran) == [("toy-test-2", True, "toy-test-2 turns right with it")]
    assert "toy-test-3" not in {key.split("/")[1] for event in events(ran) for key in event.get("attempts", ())}
    assert {record["stage"] for record in rollouts(ran, "adapt")} == {"adapt"}


@pytest.mark.parametrize("method", ["ace_rich", "combee"])
def test_other_curators_are_checked_too(method, tmp_path):
    bullets, found, _ = learn(tmp_path, knows={0, 1}, lessons={2: "right on 2", 3: "right on 9"}, method=method)
    assert (bullets, [check[1] for check in found]) == (["Bullet: right on 2."], [True, False])


def test_a_run_without_verdicts_is_refused(capsys, tmp_path):
    assert launch(tmp_path, "method=ace", "method.verify=true", "labels=none").status == 2
    assert "labels=none hides" in capsys.readouterr().err


@pytest.mark.parametrize("calls", [9, 11, 14])
def test_a_run_killed_in_a_check_goes_on_and_pays_for_nothing_twice(calls, tmp_path):
    settings = ("task=formula", "task.source=sample", "method=ace", "method.verify=true", "limit=6", "mode.epochs=2")
    whole = launch(tmp_path / "whole", *settings)
    asked = []

    def killed(backbone):
        return Recording(backbone, asked, before=crash_after(calls))

    with pytest.raises(Crash):
        launch(tmp_path / "cut", *settings, backbone=killed)
    continued = launch(tmp_path / "cut", *settings, backbone=lambda backbone: Recording(backbone, asked))
    assert whole.metrics["verification"]["kept"]
    assert continued.lasting() == whole.lasting()
    assert len(asked) == len(whole.lines("calls"))
