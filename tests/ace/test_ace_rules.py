"""ACE with rules in place of Reflector and Curator: no call of either, and a playbook that grows by what was run."""

from dataclasses import replace

import pytest

from tests.ace.test_ace_agentic import GOLD, RIGHT, Acting, Worlds
from tests.agents.world import COMPLETE, PROMPTS, code, make_agent
from tests.launching import ROOT, launch
from tests.methods.playing import starting_from
from tests.runners.scripted import Scripted, kept, rollouts
from tests.tasks.appworld.sharing import sharing

LOOKUP = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
BROKEN = "apis.music.login(username='ida@example.com')"
ORDER = "This order of calls worked: `api_docs.show_api_doc(api_name, app_name)`, then `supervisor.complete_task()`."


def play(results, *overrides, script, train=1, test=1, max_steps=3, task=Worlds):
    def acting(plan):
        agent = make_agent(plan.method.generator, max_steps=max_steps)
        return replace(plan, task=task(train=train, val=1, test=test), prompt_set=PROMPTS, agent=agent)

    settings = ("task=appworld", "task.source=sample", "method=ace", "method.reflector=rules", "mode.epochs=1")
    return launch(results, *settings, "mode.before=false", *overrides, backbone=lambda _: script, spec=acting)


def test_no_call_is_made_but_the_agents_and_repeated_strategies_gain_votes(tmp_path):
    script = Acting([LOOKUP, RIGHT])
    ran = play(tmp_path, script=script, train=3)
    assert ran.status == 0
    assert set(ran.metrics["calls"]["adapt"]) == {"generator"}
    assert ran.metrics["calls"]["adapt"]["generator"] == 6
    (bullet,) = kept(ran)
    assert (bullet["content"], bullet["section"], bullet["helpful"]) == (ORDER, "api_docs", 3)
    tested = next(call.prompt for call in script.of("generator") if "test" in call.sample)
    assert ORDER in tested


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "tries"), [("gold", 2), ("correctness", 2), ("none", 1)])
def test_a_retry_is_shown_what_the_rules_found_and_gold_is_nowhere(labels, tries, tmp_path):
    script = Acting([BROKEN, "x = 1", COMPLETE], [LOOKUP, RIGHT])
    ran = play(tmp_path, f"labels={labels}", script=script)
    assert len(rollouts(ran, "adapt")) == tries
    warning = "`music.login(username)` can fail with: AttributeError"
    assert [warning in call.prompt for call in script.of("generator") if call.trial == 1][:1] == [True] * (tries - 1)
    assert any(warning in bullet["content"] for bullet in kept(ran))
    saved = (ran.folder / "contexts" / "final.json").read_text()
    assert not any(GOLD in text for text in (saved, *(call.prompt for call in script.of("generator"))))
    assert "ida@example.com" not in saved


def test_bullets_that_an_attempt_used_are_tagged_by_its_outcome(tmp_path):
    initial = starting_from(tmp_path, "## OTHERS\n[oth-00007] read all pages\n")
    right = play(tmp_path / "right", initial, script=Acting([LOOKUP, RIGHT]))
    wrong = play(tmp_path / "wrong", initial, "method.retries=0", script=Acting([LOOKUP]))
    votes = [(book[0]["helpful"], book[0]["harmful"]) for book in map(kept, (right, wrong))]
    assert votes == [(1, 0), (0, 1)]


def test_a_run_that_is_cut_and_continued_ends_with_the_same_bytes(tmp_path):
    tries = ([BROKEN, LOOKUP, COMPLETE], [LOOKUP, RIGHT])
    whole = play(tmp_path / "whole", script=Acting(*tries), train=4)
    cut = play(tmp_path / "cut", "budget.calls=8", script=Acting(*tries), train=4)
    assert cut.status == 3
    continued = play(tmp_path / "cut", "budget.calls=null", script=Acting(*tries), train=4)
    assert continued.folder == cut.folder
    assert continued.lasting() == whole.lasting()


UNKNOWN = "print(apis.spotify.show_song_library())"
LOG_IN = """
passwords = {one['account_name']: one['password'] for one in apis.supervisor.show_account_passwords()}
email = apis.supervisor.show_profile()['email']
token = apis.spotify.login(username=email, password=passwords['spotify'])['access_token']
"""
KNOWN = "print(apis.spotify.show_song_library(access_token=token))"


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".appworld" / "bin" / "python").exists(), reason="AppWorld is not installed")
def test_in_the_real_engine_an_error_and_its_recovery_become_a_bullet(tmp_path, pytestconfig):
    steps = [UNKNOWN, LOG_IN, KNOWN, COMPLETE]
    script = Scripted(generator=lambda call: code(steps[min(call.nth, 3)]))
    settings = ("task=appworld", "task.source=sample", "method=ace", "method.reflector=rules", "labels=none")
    sizes = ("limit={train: 1, val: 1, test: 1}", "mode.epochs=1", "mode.before=false", "mode.select=final")
    with sharing(pytestconfig):
        ran = launch(tmp_path, *settings, *sizes, backbone=lambda _: script)
    assert ran.status == 0
    assert set(ran.metrics["calls"]["adapt"]) == {"generator"}
    (bullet,) = kept(ran)
    assert (bullet["section"], bullet["helpful"]) == ("error_handling", 1)
    failure, recovery = bullet["content"].split("\n")
    assert failure.startswith("`spotify.show_song_library()` can fail with: Exception: Response status code is 401:")
    assert recovery == (
        "It worked as `spotify.show_song_library(access_token)`, after `supervisor.show_account_passwords()`, then "
        "`supervisor.show_profile()`, then `spotify.login(password, username)`."
    )
    assert recovery in next(call.prompt for call in script.of("generator") if "evaluate" in call.session)
