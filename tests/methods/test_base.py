"""The base method: the task's own prompt, nothing learnt."""

import json

from tests.launching import launch
from tests.runners.scripted import Scripted, gold, play


def test_only_the_test_split_is_asked_and_nothing_is_adapted(tmp_path):
    script = Scripted(generator=lambda call: gold(call.sample))
    ran = play(tmp_path, "mode.epochs=5", "mode.before=true", script=script, method="base")
    assert sorted(call.prompt for call in script.of("generator")) == [f"Toy.ask toy-test-{n}?" for n in range(4)]
    assert ran.metrics["headline"]["before"] is None
    assert ran.metrics["headline"]["after"] == 100.0
    assert ran.metrics["rollouts"] == {"adapt": 0, "evaluate": 4}
    assert ran.metrics["context"]["tokens"] == ran.metrics["context"]["items"] == 0
    assert json.loads((ran.folder / "contexts" / "tested.json").read_text()) == {"kind": "none"}


def test_the_empty_playbook_is_asked_about_as_ace_is_before_it_learns(tmp_path):
    few = ("task=finer", "task.source=sample", "limit={train: 1, test: 6}", "mode.epochs=1")
    ace = launch(tmp_path, *few, "method=ace", "mode.before=true")
    empty = launch(tmp_path, *few, "method=ace_empty", "mode.before=false")
    assert empty.metrics["headline"]["after"] == ace.metrics["headline"]["before"]
    assert empty.metrics["calls"]["evaluate"] == {"generator": 6}
