"""ACE on the authors' playbook text: what a step adds and counts, and how replies are read."""

import json

import pytest

from tests.launching import launch
from tests.runners.scripted import Scripted, delta, events, play, wrong

TEXT = ("method.playbook=text", "method.replies=official", "method.refiner.when=never", "method.tagged=any")
ONE = {"train": 1, "val": 1, "test": 1}


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
    path = tmp_path / "playbook.txt"
    path.write_text("## STRATEGIES\n[str-00007] helpful=2 harmful=0 :: keep calm\n\n## OTHERS\n")
    return f"method.initial={path}"


def test_the_last_tag_of_a_round_counts_in_exact_words_on_any_bullet(initial, tmp_path):
    def reflector(call):
        tags = [("str-00007", "harmful"), ("str-00007", ["helpful", "HELPFUL"][call.nth])]
        return {"bullet_tags": [{"id": name, "tag": tag} for name, tag in tags]}

    script = Scripted(generator=wrong, reflector=reflector, curator=lambda _: curated())
    settings = ("method.tags=round", "method.max_reflection_rounds=2", initial)
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


def test_what_a_text_does_not_allow_is_refused(tmp_path, capsys):
    assert launch(tmp_path, "method=ace", "method.playbook=text").status == 2
    assert "method.refiner.when=delta needs playbook=bullets" in capsys.readouterr().err
