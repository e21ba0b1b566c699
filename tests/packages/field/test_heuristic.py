"""The heuristic memory: the published package's reflector and curator, over our attempts."""

import json

import pytest

pytest.importorskip("agent_episodic_memory", reason="needs the extra langchain")

from ace_bench.core.errors import DataError
from ace_bench.core.types import Attempt, Turn
from ace_field.heuristic import Observations, _observed
from tests.runners.scripted import Scripted, gold, play, steps


def noted(ran):
    return json.loads((ran.folder / "contexts" / "final.json").read_text())["entries"]


def run(results, *overrides, **sizes):
    script = Scripted(generator=lambda call: f"answer {int(call.sample[-1]) % 2}")
    ran = play(results, "mode.shuffle=false", *overrides, script=script, method="heuristic", **sizes)
    return script, ran


def test_replies_are_noted_once_and_shown_from_then_on(tmp_path):
    script, ran = run(tmp_path, train=4, test=1)
    assert noted(ran) == [
        {"category": "final_answer", "content": f"answer {n}", "outcome": "neutral"} for n in range(2)
    ]
    assert [step["context_size"] for step in steps(ran)] == [1, 2, 2, 2]
    assert ran.metrics["calls"]["adapt"] == {"generator": 4}
    first, *_, last = script.of("generator")
    assert "<playbook>" not in first.prompt
    assert "[o] answer 0\n    [o] answer 1\n" in last.prompt


def test_only_the_latest_are_shown(tmp_path):
    script, _ = run(tmp_path, "method.max_entries=1", train=2, test=1)
    assert "answer 1" in script.of("generator")[-1].prompt
    assert "answer 0" not in script.of("generator")[-1].prompt


@pytest.mark.parametrize("labels", ["gold", "none"])
def test_feedback_is_never_looked_at(labels, tmp_path):
    script, ran = run(tmp_path, f"labels={labels}", train=3, test=1)
    text = json.dumps(noted(ran)) + "".join(call.prompt for _, call in script.calls)
    assert gold("toy-train-0") not in text
    assert "correct" not in text


def test_a_run_cut_short_goes_on_to_the_same_end(tmp_path):
    _, whole = run(tmp_path / "whole")
    assert run(tmp_path / "cut", "budget.calls=3")[1].status == 3
    assert run(tmp_path / "cut", "budget.calls=null")[1].lasting() == whole.lasting()


def test_the_actions_of_an_agent_are_noted_as_uses_of_tools():
    attempt = Attempt(answer=None, trajectory=(Turn(action="print(1)", observation="1", thought="Look first."),))
    entries = Observations(shown=3).with_state(_observed({"entries": []}, attempt)).entries
    assert [(entry.category, entry.content) for entry in entries] == [("tool_use", "Look first.")]


def test_patches_and_dumps_lead_back():
    before = Observations(shown=2)
    after = before.with_state(_observed(before.state(), Attempt(answer="<b> & more")))
    assert before.patched(after.patch(before)) == after
    assert Observations.load(after.dump()).digest == after.digest
    assert "&lt;b&gt;" in after.render(None)["observations"]


@pytest.mark.parametrize("record", [{}, {"shown": 1, "entries": [{"category": "x"}]}, {"shown": "1", "entries": []}])
def test_a_broken_dump_is_refused(record):
    with pytest.raises(DataError, match="not a context of kind heuristic"):
        Observations.load(record)
