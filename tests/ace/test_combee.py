"""Combee: who is asked for a batch, what each call is shown, and what becomes of the playbook."""

import re

import pytest

from ace_bench.cli.main import start
from tests.methods.playing import starting_from
from tests.runners.scripted import Scripted, answer, delta, events, kept, play, reflection, steps

LESSON = re.compile(r"insight of toy-train-(\d+)")


def reflect(call):
    return reflection(f"insight of {call.sample}")


def propose(call):
    return delta(*(f"from lesson {number}" for number in sorted(set(LESSON.findall(call.prompt)))))


def merge(call):
    return delta("merged")


def combine(results, *overrides, train=9, **scripts):
    """A step for each batch, without retries."""
    script = Scripted(**{"reflector": reflect, "curator": propose, "merger": merge, **scripts})
    settings = (f"mode.batch_size={train}", "method.max_reflection_rounds=1", *overrides)
    return script, play(results, *settings, script=script, method="combee", train=train)


def test_each_lesson_is_dealt_twice_to_the_square_root_of_groups_and_one_merged_delta_is_applied(tmp_path, capsys):
    script, ran = combine(tmp_path)
    dealt = [LESSON.findall(call.prompt) for call in script.of("curator")]
    assert [len(group) for group in dealt] == [6, 6, 6]
    assert sorted(number for group in dealt for number in group) == sorted([*"012345678"] * 2)
    (merger,) = script.of("merger")
    assert {f"from lesson {number}" for number in range(9)} <= set(re.findall(r"from lesson \d", merger.prompt))
    (bullet,) = kept(ran)
    assert (bullet["content"], len(bullet["sources"])) == ("merged", 9)
    assert ran.metrics["calls"]["adapt"] == {"generator": 9, "reflector": 9, "curator": 3, "merger": 1}
    assert [step["context_size"] for step in steps(ran)] == [1]
    assert start("playbook", ["forget", str(ran.folder), "--sample", "toy-train-3", "--out", f"{tmp_path}/left"]) == 0
    assert "0 bullets of 1" in capsys.readouterr().out


@pytest.mark.parametrize(("train", "overrides"), [(3, ()), (9, ("method.groups=1",))])
def test_one_group_is_shown_each_lesson_once_and_needs_no_merger(train, overrides, tmp_path):
    script, ran = combine(tmp_path, *overrides, train=train)
    (curator,) = script.of("curator")
    assert sorted(LESSON.findall(curator.prompt)) == [str(number) for number in range(train)]
    assert not script.of("merger")
    assert len(kept(ran)) == train


def test_a_group_that_fails_proposes_nothing_and_a_failed_merger_changes_nothing_but_votes(tmp_path):
    first = starting_from(tmp_path, "## STRATEGIES\n[str-00007] helpful=2 harmful=0 :: keep calm\n")
    cite = {
        "generator": lambda call: answer(f"wrong on {call.sample}", "str-00007"),
        "reflector": lambda call: {**reflection(f"insight of {call.sample}", str_00007="helpful")},
    }

    def some(call):
        return "mumble" if "insight of toy-train-0" in call.prompt else propose(call)

    _, ran = combine(tmp_path / "group", first, "method.copies=1", curator=some, **cite)
    assert sorted((bullet["content"], bullet["helpful"]) for bullet in kept(ran)) == [("keep calm", 11), ("merged", 0)]
    _, ran = combine(tmp_path / "merger", first, merger=lambda _: "mumble", **cite)
    assert [(bullet["content"], bullet["helpful"]) for bullet in kept(ran)] == [("keep calm", 11)]
    (fault,) = [event for event in events(ran) if event["event"] == "fault"]
    assert (fault["role"], len(fault["samples"])) == ("merger", 9)
