"""What ACE does within a step: when tags count, and when the Curator is asked."""

import re

import pytest

from tests.runners.scripted import Scripted, answer, kept, play, reflection, steps

ONE = {"train": 1, "val": 1, "test": 1}
HELPFUL = re.compile(r"str-00007: helpful (\d)")


@pytest.fixture
def initial(tmp_path):
    path = tmp_path / "playbook.txt"
    path.write_text("## STRATEGIES\n[str-00007] helpful=2 harmful=0 :: keep calm\n")
    return f"method.initial={path}"


def citing(call):
    return answer(f"wrong on {call.sample}", "str-00007")


def test_tags_count_after_the_step(initial, tmp_path):
    script = Scripted(generator=citing, reflector=lambda _: reflection(str_00007="helpful"))
    ran = play(tmp_path, "method.max_reflection_rounds=3", initial, script=script, **ONE)
    learning = [call for call in script.of("generator") if "train" in call.sample]
    assert [HELPFUL.search(call.prompt)[1] for call in learning] == ["2", "2", "2", "2"]
    (curator,) = script.of("curator")
    assert HELPFUL.search(curator.prompt)[1] == "5"
    assert [bullet["helpful"] for bullet in kept(ran)] == [5], "each tag counts once"


def test_the_curator_counts_the_steps_of_the_run(tmp_path):
    script = Scripted()
    ran = play(tmp_path, "mode.epochs=2", "method.curator_every=3", script=script, train=5)
    assert len(steps(ran)) == 10
    shown = [re.search(r"\d+ of \d+", call.prompt)[0] for call in script.of("curator")]
    assert shown == ["3 of 10", "6 of 10", "9 of 10"]
    assert ran.metrics["calls"]["adapt"]["curator"] == 3
