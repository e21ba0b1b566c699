"""Reflections on earlier samples that ACE's Generator is shown while it adapts, and the order of its bullets."""

import re
from shutil import copytree

import pytest

from tests.ace.test_ace_agentic import RIGHT, Acting
from tests.ace.test_ace_agentic import play as play_agent
from tests.doubles import Recording
from tests.launching import ROOT, launch
from tests.runners.scripted import Scripted, lesson, play, reflection, right, wrong

WINDOW = "method.generator_reflections=3"
ORDERED = ("mode.shuffle=false", "method.max_reflection_rounds=1")


def recent(prompt):
    """The insights in a prompt's part for earlier samples; ``None`` where there is no such part."""
    shown = re.search(r"^<recent_reflections>\n(.*?)\n</recent_reflections>\n", prompt, re.MULTILINE | re.DOTALL)
    return None if shown is None else re.findall(r"insight on toy-(\w+-\d)", shown[1])


def script(generator=wrong):
    return Scripted(generator=generator, reflector=lambda call: reflection(f"insight on {call.sample}"), curator=lesson)


def test_a_rollout_of_adaptation_sees_the_last_reflections_on_earlier_samples_and_evaluation_none(tmp_path):
    def run(results, *settings):
        scripted = script()
        return scripted, play(results, WINDOW, *ORDERED, *settings, script=scripted, train=5, test=2)

    scripted, whole = run(tmp_path / "whole")
    first = [call for call in scripted.of("generator") if "train" in call.sample and call.trial == 0]
    zero, one, two, three = (f"train-{n}" for n in range(4))
    assert [recent(call.prompt) for call in first] == [[], [zero], [zero, one], [zero, one, two], [one, two, three]]
    assert "<recent_reflections>\n(none)\n" in first[0].prompt
    tested = [call for call in scripted.of("generator") if "test" in call.sample]
    assert tested
    assert not any("insight on" in call.prompt or "ecent" in call.prompt for call in tested)

    _, cut = run(tmp_path / "cut", "budget.calls=9")
    assert cut.status == 3
    _, continued = run(tmp_path / "cut", "budget.calls=null")
    assert continued.folder == cut.folder
    assert continued.lasting() == whole.lasting()


def test_they_stand_behind_the_playbook_and_before_the_question_and_a_retry_sees_its_own_reflection_apart(tmp_path):
    scripted = script()
    play(tmp_path, WINDOW, *ORDERED, script=scripted, train=2, test=1)
    first, retry = [call.prompt for call in scripted.of("generator") if call.sample == "toy-train-1"]
    asked = first.rpartition("<task>")[2]  # behind the worked example
    parts = [asked.index(f"\n<{part}>") for part in ("playbook", "counters", "recent_reflections", "question")]
    assert parts == sorted(parts)
    assert recent(retry) == ["train-0"]
    assert "insight on toy-train-1" in retry.partition("<reflection>")[2]


@pytest.mark.parametrize("settings", [(), (WINDOW,)])
def test_online_each_sample_sees_those_before_it(settings, tmp_path):
    scripted = script(right)
    play(tmp_path, "mode=online", "mode.shuffle=false", *settings, script=scripted, test=3)
    seen = [["test-0"][:n] + ["test-1"][: n - 1] for n in range(3)] if settings else [None] * 3
    assert [recent(call.prompt) for call in scripted.of("generator")] == seen


def test_an_agent_sees_them_too(tmp_path):
    scripted = Acting([RIGHT], reflector=lambda call: reflection(f"insight on {call.sample}"))
    play_agent(tmp_path, WINDOW, *ORDERED, script=scripted, train=2)
    prompts = {call.sample: call.prompt for call in scripted.of("generator")}
    assert recent(prompts["toy-train-1"]) == ["train-0"]
    assert recent(prompts["toy-test-0"]) is None
    assert prompts["toy-train-1"].index("<recent_reflections>") < prompts["toy-train-1"].index("<supervisor>")


def test_a_prompt_set_that_would_not_show_them_is_refused(tmp_path, capsys):
    prompts = copytree(ROOT / "prompts" / "default", tmp_path / "prompts")
    for path in prompts.rglob("generator.j2"):
        path.write_text(path.read_text().replace("recent_reflections", "something_else"))
    asked = []
    settings = ("method=ace", WINDOW, f"prompts={prompts}", "task.source=sample")
    assert launch(tmp_path, *settings, backbone=lambda inner: Recording(inner, asked)).status == 2
    assert "needs prompts that show the field recent_reflections" in capsys.readouterr().err
    assert not asked


def test_helpful_bullets_come_first_only_on_request(tmp_path):
    start = tmp_path / "start.txt"
    start.write_text("## OTHERS\n[o-1] helpful=0 harmful=1 :: last\n[o-2] helpful=3 harmful=0 :: first\n")
    settings = ("method=ace", "task=finer", "task.source=sample", "limit=1", "mode=evaluate")
    for order, shown in (("created", ["last", "first"]), ("helpful", ["first", "last"])):
        folder = launch(tmp_path / order, *settings, f"mode.context={start}", f"method.bullet_order={order}").folder
        calls = (folder / "calls.jsonl").read_text()
        assert sorted(shown, key=lambda text: calls.index(f") {text}")) == shown
