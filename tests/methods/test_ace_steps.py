"""What ACE does within a step: when tags count, when the Curator is asked, and the attempt after curation."""

import re

import pytest

from tests.launching import launch
from tests.runners.scripted import Scripted, answer, delta, events, gold, kept, play, reflection, right, steps, wrong

ONE = {"train": 1, "val": 1, "test": 1}
HELPFUL = re.compile(r"str-00007: helpful (\d)")


@pytest.fixture
def initial(tmp_path):
    path = tmp_path / "playbook.txt"
    path.write_text("## STRATEGIES\n[str-00007] helpful=2 harmful=0 :: keep calm\n")
    return f"method.initial={path}"


def citing(call):
    return answer(f"wrong on {call.sample}", "str-00007")


@pytest.mark.parametrize(("tags", "seen"), [("step", ["2", "2", "2", "2"]), ("round", ["2", "3", "4", "5"])])
def test_tags_count_before_the_next_attempt_or_after_the_step(tags, seen, initial, tmp_path):
    script = Scripted(generator=citing, reflector=lambda _: reflection(str_00007="helpful"))
    rounds = ("method.max_reflection_rounds=3", f"method.tags={tags}")
    ran = play(tmp_path, *rounds, initial, script=script, **ONE)
    learning = [call for call in script.of("generator") if "train" in call.sample]
    assert [HELPFUL.search(call.prompt)[1] for call in learning] == seen
    (curator,) = script.of("curator")
    assert HELPFUL.search(curator.prompt)[1] == "5"
    assert [bullet["helpful"] for bullet in kept(ran)] == [5], "each tag counts once"


def test_curating_after_every_attempt_changes_the_playbook_of_the_next(tmp_path):
    script = Scripted(generator=wrong, curator=lambda call: delta(f"lesson {call.nth}"))
    settings = ("method.max_reflection_rounds=3", "method.tags=round", "method.curate=attempt")
    ran = play(tmp_path, *settings, script=script, **ONE)
    learning = [call for call in script.of("generator") if "train" in call.sample]
    assert [call.prompt.count("lesson ") for call in learning] == [0, 1, 2, 3]
    assert [bullet["content"] for bullet in kept(ran)] == ["lesson 0", "lesson 1", "lesson 2"]


def test_curating_after_every_attempt_needs_tags_by_round(tmp_path, capsys):
    assert launch(tmp_path, "method=ace", "method.curate=attempt").status == 2
    assert "method.curate=attempt changes the playbook within a step: set tags=round" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "shown", "curated"), [
    ("run", ["3 of 10", "6 of 10", "9 of 10"], 3),
    ("epoch", ["3 of 5", "3 of 5"], 2),
])  # fmt: skip
def test_the_curator_counts_the_steps_of_the_run_or_of_the_epoch(number, shown, curated, tmp_path):
    script = Scripted()
    settings = ("mode.epochs=2", "method.curator_every=3", f"method.step_number={number}")
    ran = play(tmp_path, *settings, script=script, train=5)
    assert len(steps(ran)) == 10
    assert [re.search(r"\d+ of \d+", call.prompt)[0] for call in script.of("curator")] == shown
    assert ran.metrics["calls"]["adapt"]["curator"] == curated


def test_the_attempt_after_curation_sees_the_new_playbook_and_costs_calls_of_adaptation(tmp_path):
    def generator(call):
        return right(call) if f"lesson of {call.sample}" in call.prompt else wrong(call)

    script = Scripted(generator=generator, curator=lambda call: delta(f"lesson of {call.sample}"))
    settings = ("method.max_reflection_rounds=1", "method.refiner.when=never")
    ran = play(tmp_path, "method.after_curation=true", *settings, script=script, train=3)
    assert ran.metrics["calls"]["adapt"]["generator"] == 3 * 3
    assert ran.metrics["learning"] == {
        "n": 3,
        "before": {"accuracy": 0.0},
        "after_curation": {"accuracy": 100.0},
    }
    assert not any(event["event"] == "rejected" for event in events(ran))
    plain = play(tmp_path / "plain", *settings, script=script, train=3)
    assert "learning" not in plain.metrics
    assert kept(plain) == kept(ran), "it changes nothing but a metric"


def test_an_attempt_after_curation_is_made_also_where_nothing_changed(tmp_path):
    script = Scripted(generator=lambda call: answer(gold(call.sample)))
    ran = play(tmp_path, "method.after_curation=true", script=script, **ONE)
    assert ran.metrics["calls"]["adapt"]["generator"] == 2
    assert ran.metrics["learning"]["after_curation"] == {"accuracy": 100.0}
