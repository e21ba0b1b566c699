"""What only tasks of Inspect AI do: dry runs, limits, dialogues."""

import pytest

from tests.launching import launch
from tests.tasks.environments.running import ATLAS, rollouts

pytest.importorskip("inspect_ai", reason="needs the extra inspect: make test-environments")
LOOKUP = ("task=inspect", f"{ATLAS}@lookup")


def test_the_cost_is_estimated_and_the_first_prompts_are_shown_with_tools(tmp_path, capsys):
    assert launch(tmp_path, *LOOKUP, "dry_run=true", "mode.epochs=1").status == 0
    assert "first prompt of the generator" in capsys.readouterr().out


def test_an_attempt_of_too_many_turns_is_graded_as_it_stands(tmp_path):
    ran = launch(tmp_path, *LOOKUP, "agent.max_turns=1", "method=base", "mode.before=false")
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert ran.metrics["splits"]["test"]["after"]["scorer_half"] == 50.0
    assert {record["attempt"]["ended"] for record in rollouts(ran)} == {"steps"}


def test_an_environment_may_speak_as_the_user_and_its_words_are_recorded(tmp_path):
    ran = launch(tmp_path, "task=inspect", f"{ATLAS}@dialogue", "method=ace", "mode.epochs=1")
    assert ran.status == 0
    record = rollouts(ran)[-1]
    assert record["calls"] == 2
    assert record["attempt"]["trajectory"][0]["observation"] == "Are you sure? Options: yes, no."
    assert record["attempt"]["answer"] == record["attempt"]["trajectory"][1]["thought"]
