"""Reflexion: who is tried again, what a trial is shown, and which trial counts."""

import json

import pytest

from ace_bench.report.records import read_run
from tests.launching import launch
from tests.packages.field.making import BROKEN
from tests.runners.scripted import Scripted, answer, events, gold, play


def right_at(trials):
    """Right from a trial on, by the number of the sample; others never."""

    def generator(call):
        first = trials.get(int(call.sample[-1]))
        return answer(gold(call.sample) if first is not None and call.trial >= first else f"guess {call.trial}")

    return generator


def note(call):
    return {"reflection": f"note {call.trial} on {call.sample}"}


def reflexion(tmp_path, *overrides, generator=None, reflector=note, self_judge=None, test=3):
    generator = generator or right_at({0: 0, 1: 1})
    script = Scripted(generator=generator, reflector=reflector, self_judge=self_judge or (lambda _: {"success": True}))
    settings = ("mode=online", "labels=correctness", *overrides)
    ran = play(tmp_path, *settings, script=script, method="reflexion", test=test)
    assert ran.status == 0
    return ran, script


def trials(script, sample):
    return [call for call in script.of("generator") if call.sample == sample]


def test_a_sample_is_tried_until_it_is_right_or_no_trial_is_left(tmp_path):
    ran, script = reflexion(tmp_path)
    assert [len(trials(script, f"toy-test-{number}")) for number in range(3)] == [1, 2, 3]
    assert ran.metrics["headline"]["before"] == pytest.approx(33.3333)
    assert ran.metrics["headline"]["after"] == pytest.approx(66.6667)
    assert ran.metrics["trials"] == {"n": 3, "mean": 2.0}
    assert ran.metrics["calls"] == {"adapt": {"generator": 6, "reflector": 3}, "evaluate": {}}
    assert "2.00 a sample; the last counts, labels=correctness said which failed" in (
        (ran.folder / "summary.txt").read_text()
    )


def test_reports_take_the_trial_that_counts(tmp_path):
    ran, _ = reflexion(tmp_path)
    points = read_run(ran.folder).points("accuracy")
    assert {sample[-1]: point.score for sample, point in points.items()} == {"0": 1.0, "1": 1.0, "2": 0.0}


def test_a_trial_is_shown_the_last_notes_on_its_sample_and_no_others(tmp_path):
    _, script = reflexion(tmp_path, "method.trials=4", "method.memory=2")
    first, _, _, last = (call.prompt for call in trials(script, "toy-test-2"))
    assert "note" not in first
    assert "\n<reflection>\nnote 1 on toy-test-2\n\nnote 2 on toy-test-2\n</reflection>" in last
    assert "toy-test-1" not in last
    reflected = [call.prompt for call in script.of("reflector") if call.sample == "toy-test-2"]
    assert "guess 2" in reflected[2]
    assert "<earlier_notes>\nnote 0 on toy-test-2\n\nnote 1 on toy-test-2\n</earlier_notes>" in reflected[2]


def test_the_authors_notes_are_lines_of_text_that_only_trials_see(tmp_path):
    settings = ("method.trials=3", "method.protocol=authors")
    _, script = reflexion(tmp_path, *settings, reflector=lambda call: f" note\n{call.trial} ")
    last = trials(script, "toy-test-2")[-1].prompt
    assert "\n<reflection>\n- note0\n- note1\n</reflection>" in last
    assert not any("note0" in call.prompt for call in script.of("reflector"))


def test_without_labels_the_model_itself_says_which_trials_failed(tmp_path):
    def self_judge(call):
        return {"success": "guess 1" in call.prompt}

    ran, script = reflexion(tmp_path, "labels=none", self_judge=self_judge, generator=right_at({}))
    assert [len(trials(script, f"toy-test-{number}")) for number in range(3)] == [2, 2, 2]
    assert ran.metrics["operations"] == {"judged_failure": 3, "judged_success": 3, "reflected": 3}


def test_a_trial_that_cannot_be_finished_does_not_count_and_ends_the_trials(tmp_path):
    def generator(call):
        return BROKEN if call.trial == 1 else answer("guess")

    ran, script = reflexion(tmp_path, generator=generator, test=1)
    assert len(trials(script, "toy-test-0")) == 2
    assert ran.metrics["faults"]["adapt"] == {"generator/model/content_filter": 1}
    (last,) = [event for event in events(ran) if event["event"] == "last_trial"]
    assert (last["last"], last["trials"]) == (last["first"], 2)


def test_without_a_reflection_there_is_no_further_trial(tmp_path):
    ran, script = reflexion(tmp_path, reflector=lambda _: BROKEN, test=3)
    assert len(script.of("generator")) == 3
    assert ran.metrics["faults"]["adapt"] == {"reflector/model/content_filter": 2}


@pytest.mark.parametrize("mode", ["offline", "evaluate"])
def test_other_modes_are_refused_before_any_call(mode, tmp_path, capsys):
    saved = tmp_path / "none.json"
    saved.write_text(json.dumps({"kind": "none"}))
    settings = ("task=formula", "task.source=sample", "method=reflexion", f"mode={mode}")
    ran = launch(tmp_path, *settings, *([f"mode.context={saved}"] if mode == "evaluate" else []))
    assert ran.status == 2
    assert "carries nothing from sample to sample: use mode=online" in capsys.readouterr().err
