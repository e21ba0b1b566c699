"""The authors' finance loop: what a step adds and counts, how replies are read, and the attempt after curation."""

import json
import re

import pytest

from tests.launching import launch
from tests.methods.playing import ONE, starting_from
from tests.runners.scripted import Scripted, answer, delta, events, gold, play, right, steps, wrong

OFFICIAL = "protocol=official"
TEXT = (OFFICIAL, "method.measure_post_update=false")


def text_of(ran, name="final"):
    return json.loads((ran.folder / "contexts" / f"{name}.json").read_text())["text"]


def curated(*contents, section="others"):
    added = [{"type": "ADD", "section": section, "content": content} for content in contents]
    return {"reasoning": "because", "operations": added}


def test_exact_duplicates_stay_and_ids_are_numbered_by_one_counter(tmp_path):
    ran = play(tmp_path, *TEXT, script=Scripted(curator=lambda _: curated("same", "same")), train=2)
    lines = [line for line in text_of(ran).splitlines() if line.startswith("[")]
    assert lines == [f"[misc-{number:05d}] helpful=0 harmful=0 :: same" for number in (1, 2, 3, 4)]


@pytest.fixture
def initial(tmp_path):
    return starting_from(tmp_path, "## STRATEGIES\n[str-00007] helpful=2 harmful=0 :: keep calm\n\n## OTHERS\n")


def test_the_last_tag_of_a_round_counts_in_exact_words_on_any_bullet(initial, tmp_path):
    def reflector(call):
        tags = [("str-00007", "harmful"), ("str-00007", ["helpful", "HELPFUL"][call.nth])]
        return {"bullet_tags": [{"id": name, "tag": tag} for name, tag in tags]}

    script = Scripted(generator=wrong, reflector=reflector, curator=lambda _: curated())
    settings = ("method.max_reflection_rounds=2", initial)
    ran = play(tmp_path, *TEXT, *settings, script=script, **ONE)
    assert "[str-00007] helpful=3 harmful=0 :: keep calm" in text_of(ran)
    assert "helpful=3" in [call for call in script.of("generator") if "train" in call.sample][1].prompt


@pytest.mark.parametrize("said", [delta("good"), "no JSON", {"reasoning": "", "operations": [{"type": "ADD"}]}])
def test_a_curators_reply_counts_as_a_whole_or_not_at_all_and_is_asked_for_once(said, initial, tmp_path):
    script = Scripted(curator=lambda _: said)
    ran = play(tmp_path, *TEXT, initial, script=script, **ONE)
    assert len(script.of("curator")) == 1
    assert text_of(ran) == text_of(ran, "initial")
    assert text_of(ran).endswith("## OTHERS\n")  # as it was, to the last blank
    assert ran.metrics["unreadable_replies"]["adapt"] == {"curator": 1}


def test_operations_without_effect_are_noted(tmp_path):
    operations = [{"type": "REMOVE", "id": "misc-00001"}, *curated("new", section="no such")["operations"]]
    script = Scripted(curator=lambda _: {"reasoning": "", "operations": operations})
    ran = play(tmp_path, *TEXT, script=script, **ONE)
    assert "[misc-00001] helpful=0 harmful=0 :: new" in text_of(ran)
    assert [(event["event"], event.get("bullet")) for event in events(ran)] == [
        ("accepted", "misc-00001"),
        ("rejected", None),
    ]


def test_a_reflection_of_any_words_carries_on_whole(tmp_path):
    script = Scripted(generator=wrong, reflector=lambda _: "just words", curator=lambda _: curated())
    play(tmp_path, *TEXT, "method.max_reflection_rounds=1", script=script, **ONE)
    assert len(script.of("reflector")) == 1
    assert "just words" in script.of("generator")[1].prompt
    assert "just words" in script.of("curator")[0].prompt


def test_a_text_is_evaluated_as_it_is(tmp_path):
    path = tmp_path / "published.txt"
    path.write_text("## OWN\n\nloose words\n[own-00001] helpful=6 harmful=0 :: check\n\n\n## OTHERS\n")
    script = Scripted()
    settings = ("task=formula", "task.source=sample", "limit=1", "mode=evaluate", f"mode.context={path}")
    launch(tmp_path, "method=ace", *TEXT, *settings, backbone=lambda _: script)
    assert path.read_text().strip() in script.of("generator")[0].prompt


def test_the_curator_counts_the_steps_of_the_epoch(tmp_path):
    script = Scripted(curator=lambda _: curated())
    ran = play(tmp_path, *TEXT, "mode.epochs=2", "method.curator_every=3", script=script, train=5)
    assert len(steps(ran)) == 10
    assert [re.search(r"\d+ of \d+", call.prompt)[0] for call in script.of("curator")] == ["3 of 5", "3 of 5"]
    assert ran.metrics["calls"]["adapt"]["curator"] == 2


def test_the_attempt_after_curation_sees_the_new_playbook_and_costs_calls_of_adaptation(tmp_path):
    def generator(call):
        return right(call) if f"lesson of {call.sample}" in call.prompt else wrong(call)

    script = Scripted(generator=generator, curator=lambda call: curated(f"lesson of {call.sample}"))
    rounds = "method.max_reflection_rounds=1"
    ran = play(tmp_path, OFFICIAL, rounds, script=script, train=3)
    assert ran.metrics["calls"]["adapt"]["generator"] == 3 * 3
    assert ran.metrics["learning"] == {
        "n": 3,
        "before": {"accuracy": 0.0},
        "after_curation": {"accuracy": 100.0},
    }
    assert not any(event["event"] == "rejected" for event in events(ran))
    plain = play(tmp_path / "plain", *TEXT, rounds, script=script, train=3)
    assert "learning" not in plain.metrics
    assert text_of(plain) == text_of(ran), "it changes nothing but a metric"


def test_an_attempt_after_curation_is_made_also_where_nothing_changed(tmp_path):
    script = Scripted(generator=lambda call: answer(gold(call.sample)), curator=lambda _: curated())
    ran = play(tmp_path, OFFICIAL, script=script, **ONE)
    assert ran.metrics["calls"]["adapt"]["generator"] == 2
    assert ran.metrics["learning"]["after_curation"] == {"accuracy": 100.0}
