"""The heuristic memory: the published package's reflector and curator, over our attempts."""

import json

import pytest

pytest.importorskip("agent_episodic_memory", reason="needs the extra langchain")

from ace_bench.core.types import Attempt, Turn
from ace_field.heuristic import Observations, _observed
from tests.packages.field.making import learn
from tests.runners.scripted import gold, steps


def noted(ran):
    return json.loads((ran.folder / "contexts" / "final.json").read_text())["entries"]


def run(folder, *settings, **sizes):
    generator = lambda call: f"answer {int(call.sample[-1]) % 2}"  # noqa: E731
    ran, script = learn(folder, "heuristic", *settings, mode="offline", generator=generator, **sizes)
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
    assert not any(gold("toy-train-0") in call.prompt for call in script.of("generator")), "feedback is never used"


def test_only_the_latest_are_shown(tmp_path):
    script, _ = run(tmp_path, "method.max_entries=1", train=2, test=1)
    assert "answer 1" in script.of("generator")[-1].prompt
    assert "answer 0" not in script.of("generator")[-1].prompt


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
