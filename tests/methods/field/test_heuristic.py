"""The heuristic memory: the published package's reflector and curator, over our attempts."""

import pytest

pytest.importorskip("agent_episodic_memory", reason="needs the extra langchain")

from ace_bench.core.types import Attempt, Turn
from ace_bench.methods.field.heuristic import Observations, _observe
from tests.methods.field.making import learn
from tests.methods.playing import context_of
from tests.runners.scripted import events, gold


def test_replies_are_noted_once_and_the_latest_are_shown_from_then_on(tmp_path):
    generator = lambda call: f"answer {int(call.sample[-1]) % 2}"  # noqa: E731
    for most in (1, 32):
        settings = {"mode": "offline", "generator": generator, "train": 4, "test": 1}
        ran, script = learn(tmp_path / str(most), "heuristic", f"method.max_entries={most}", **settings)
        first, *_, last = script.of("generator")
        assert "<playbook>" not in first.prompt
        assert ("[o] answer 0\n    " in last.prompt, "[o] answer 1\n" in last.prompt) == (most > 1, True)
        assert not any(gold("toy-train-0") in call.prompt for call in script.of("generator")), "feedback is never used"
    noted = [{"category": "final_answer", "content": f"answer {n}", "outcome": "neutral"} for n in range(2)]
    assert context_of(ran)["entries"] == noted
    assert [(event["event"], event["entries"]) for event in events(ran)] == [("kept", 1)] * 2 + [("skipped", 0)] * 2
    assert ran.metrics["calls"]["adapt"] == {"generator": 4}


def test_the_actions_of_an_agent_are_noted_as_uses_of_tools():
    attempt = Attempt(answer=None, trajectory=(Turn(action="print(1)", observation="1", thought="Look first."),))
    entries = Observations(shown=3).with_state(_observe({"entries": []}, attempt)).entries
    assert [(entry.category, entry.content) for entry in entries] == [("tool_use", "Look first.")]


def test_patches_and_dumps_lead_back():
    before = Observations(shown=2)
    after = before.with_state(_observe(before.state(), Attempt(answer="<b> & more")))
    assert before.patched(after.patch(before)) == after
    assert Observations.load(after.dump()).digest == after.digest
    assert "&lt;b&gt;" in after.render(None)["observations"]
