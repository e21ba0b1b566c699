"""The authors' AppWorld loop: what is learnt from, in which order, by what rules."""

from __future__ import annotations

import json
import shutil

import pytest

from ace_bench.methods.official.appworld import OfficialAppWorld
from ace_bench.store.prompts import PromptSet
from tests.ace.test_ace_agentic import GOLD, RIGHT, Acting, Worlds, play
from tests.agents.world import COMPLETE
from tests.launching import ROOT
from tests.runners.scripted import events, rollouts

INITIAL = "## VERIFICATION CHECKLIST\n[vc-00004] look first\n\n## OTHERS\n"
WRONG = ["x = 1", COMPLETE]


class Apps(Worlds):
    """Has sections of AppWorld's playbooks, and with them the dialect of their text."""

    sections = ("verification_checklist", "others")


@pytest.fixture
def learn(tmp_path):
    initial = tmp_path / "initial.txt"
    initial.write_text(INITIAL)

    def run(script, *overrides, **settings):
        method = OfficialAppWorld(max_reflection_rounds=5, curator_every=1, token_budget=80_000, initial=str(initial))
        return play(tmp_path / "runs", *overrides, script=script, task=Apps, method=method, **settings)

    return run


def adding(*sections, kind="ADD"):
    def curate(call):
        operations = [{"type": kind, "section": section, "content": f"of {section}"} for section in sections]
        return {"reasoning": "", "operations": operations}

    return curate


def playbook(ran):
    return json.loads((ran.folder / "contexts" / "final.json").read_text())["text"]


def test_every_failed_attempt_is_reflected_on_twice_and_the_next_one_runs_under_the_new_playbook(learn):
    said = iter(["for the curator", "for the second attempt", "second", "for the third attempt", "third"])
    script = Acting(WRONG, WRONG, [RIGHT], reflector=lambda _: next(said), curator=adding("others"))
    ran = learn(script)
    roles = [role for role, call in script.calls if role != "generator"]
    assert roles == ["reflector", "curator", "reflector"] * 2 + ["reflector", "curator"]
    retries = [call for call in script.of("generator") if call.nth == 0 and call.trial]
    assert ["for the second attempt" in call.prompt for call in retries] == [True, False]
    assert ["[misc-00005] of others" in call.prompt for call in retries] == [True, True]
    assert ["for the curator" in call.prompt for call in script.of("curator")] == [True, False, False]
    assert playbook(ran).endswith("## OTHERS\n[misc-00005] of others\n[misc-00006] of others\n[misc-00007] of others")
    accepted = [event["bullet"] for event in events(ran) if event["event"] == "accepted"]
    assert accepted == ["misc-00005", "misc-00006", "misc-00007"]


def test_the_first_reflection_sees_the_report_of_the_attempt_before(learn, tmp_path):
    shown = "{% block user %}{{ report or 'no report' }} {{ gold }}{% endblock %}"
    prompts = _prompts(tmp_path, shown)
    script = Acting(WRONG, [RIGHT], reflector=lambda _: "advice", curator=adding())
    learn(script, prompts=prompts)
    seen = [("passes: 1" in call.prompt, GOLD in call.prompt) for call in script.of("reflector")]
    assert seen == [(False, True), (True, True), (True, True)]


def test_an_attempt_that_did_not_finish_is_skipped_and_its_reflection_is_shown_again(learn):
    said = iter(["unused", "advice", "last"])
    script = Acting(WRONG, ["x = 1"], [RIGHT], reflector=lambda _: next(said), curator=adding("others"))
    ran = learn(script, max_steps=2)
    assert [role for role, _ in script.calls if role != "generator"] == [
        "reflector", "curator", "reflector", "reflector", "curator",
    ]  # fmt: skip
    retries = [call for call in script.of("generator") if call.nth == 0 and call.trial]
    assert ["advice" in call.prompt for call in retries] == [True, True]
    assert [line["attempt"]["ended"] for line in rollouts(ran, "adapt")] == ["completed", "steps", "completed"]


@pytest.mark.parametrize("steps", [WRONG, ["x = 1"]])
def test_without_labels_there_is_one_attempt(learn, steps):
    script = Acting(steps, [RIGHT], curator=adding("others"))
    ran = learn(script, "labels=none", max_steps=2)
    assert len(rollouts(ran, "adapt")) == 1
    finished = steps is WRONG
    assert len(script.of("reflector")) == len(script.of("curator")) == finished
    assert ("of others" in playbook(ran)) is finished


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (adding("others", "no such section", "Verification checklist:"), ["of Verification checklist:", "of others"]),
        (adding("others", kind="UPDATE"), []),
        (lambda _: {"operations": [{"type": "ADD", "section": "others", "content": "x"}]}, []),
        (lambda _: "nothing to add", []),
    ],
)
def test_a_curators_reply_counts_as_a_whole_and_other_sections_are_left_out(learn, reply, kept):
    ran = learn(Acting([RIGHT], curator=reply))
    new = [line.partition("] ")[2] for line in playbook(ran).splitlines() if line.startswith("[")]
    assert new == ["look first", *kept]
    if not kept:
        assert playbook(ran) == INITIAL
        assert [event["event"] for event in events(ran)] == ["rejected"]


def _prompts(folder, reflector):
    """The default prompts with another Reflector."""
    own = folder / "prompts"
    shutil.copytree(ROOT / "prompts" / "default", own)
    (own / "agent" / "reflector.j2").write_text(reflector)
    return PromptSet(own, task="appworld", prompt_group="agent")
