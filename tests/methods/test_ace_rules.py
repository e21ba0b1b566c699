"""ACE with rules in place of Reflector and Curator: no call of either, and a playbook that grows by what was run."""

import re
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ace_bench.agents.react import ReAct
from tests.agents.test_react_memory import TOOLS
from tests.agents.world import COMPLETE, PROMPTS, World, code
from tests.launching import ROOT, launch
from tests.methods.test_ace_agentic import GOLD, RIGHT, Acting, Worlds
from tests.packages.appworld.sharing import sharing
from tests.runners.scripted import Scripted, kept, rollouts

LOOKUP = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
BROKEN = "apis.music.login(username='ida@example.com')"
ORDER = "This order of calls worked: `api_docs.show_api_doc(api_name, app_name)`, then `supervisor.complete_task()`."


def play(results, *overrides, script, train=1, test=1, max_steps=3, task=Worlds):
    def acting(plan):
        agent = ReAct(
            prompts=PROMPTS,
            generator=plan.method.generator,
            max_steps=max_steps,
            history_chars=400_000,
            demonstrations=None,
            memory="off",
            memory_place="newest",
            tools=TOOLS,
            parse_replies="lenient",
            keep_text_replies=True,
            max_usd=None,
        )
        return replace(plan, task=task(train=train, val=1, test=test), prompts=PROMPTS, agent=agent)

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
    initial = tmp_path / "playbook.txt"
    initial.write_text("## OTHERS\n[oth-00007] read all pages\n")
    right = play(tmp_path / "right", f"method.initial={initial}", script=Acting([LOOKUP, RIGHT]))
    wrong = play(tmp_path / "wrong", f"method.initial={initial}", "method.retries=0", script=Acting([LOOKUP]))
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


@pytest.mark.parametrize("task", ["finer", "bird_sql"])
def test_questions_have_no_executions_to_learn_from(task, tmp_path, capsys):
    assert launch(tmp_path, f"task={task}", "method=ace", "method.reflector=rules").status == 2
    assert "method.reflector=rules needs an agent that acts by tools" in capsys.readouterr().err


def test_a_role_without_calls_takes_no_backbone(tmp_path, capsys):
    roles = ("task=appworld", "method.reflector=rules", "backbone@roles.reflector=embedded")
    assert launch(tmp_path, *roles, "method=ace").status == 2
    assert "this run has no role reflector" in capsys.readouterr().err


MACHINES = ("lathe", "press", "drill", "kiln", "loom", "mill", "saw", "still")
PREPARATIONS = ("power.switch_on", "water.fill", "door.close", "clock.set_time")


class Workshop(World):
    """Eight machines, each of which starts only after another tool was called; an error does not say which."""

    def __init__(self):
        super().__init__()
        self._ready = set()
        tools = {name: SimpleNamespace(**{api: self._prepare(f"{name}.{api}")}) for name, api in split(PREPARATIONS)}
        machines = {name: SimpleNamespace(start=self._start(n)) for n, name in enumerate(MACHINES)}
        vars(self._names["apis"]).update(tools | machines)

    def _prepare(self, name):
        return lambda: self._ready.add(name)

    def _start(self, number):
        def start():
            if PREPARATIONS[number % 4] not in self._ready:
                raise RuntimeError("Response status code is 409: not ready")
            return True

        return start


def split(names):
    return [name.split(".") for name in names]


class Workshops(Worlds):
    @contextmanager
    def open(self, sample):
        yield Workshop()


def mechanic(call):
    """Start the machine; where that fails, prepare two things one after the other, other ones in a second trial.

    A strategy in the playbook about the machine is followed first.
    """
    number = int(call.sample[-1])
    learnt = re.search(rf"`{MACHINES[number]}\.start\(\)` can fail .*\n.*, after `([\w.]+)\(", call.prompt)
    first = 2 * (call.trial % 2)
    order = [learnt[1]] if learnt else [None, *PREPARATIONS[first : first + 2]]
    needed = PREPARATIONS[number % 4]
    steps = order[: order.index(needed) + 1] if needed in order else order
    if call.nth >= len(steps):
        return code(COMPLETE)
    before = f"apis.{steps[call.nth]}()\n" if steps[call.nth] else ""
    return code(f"{before}good = apis.{MACHINES[number]}.start()")


@pytest.mark.parametrize(
    ("settings", "score", "steps"), [((), 75.0, 2.875), (("method.refiner.threshold=0.99",), 100.0, 2.0)]
)
def test_strategies_help_an_agent_that_follows_them_unless_similar_ones_are_merged(tmp_path, settings, score, steps):
    script = Scripted(generator=mechanic)
    sizes = {"train": 8, "test": 8, "max_steps": 4}
    ran = play(tmp_path, "mode.before=true", *settings, script=script, task=Workshops, **sizes)
    assert set(ran.metrics["calls"]["adapt"]) == {"generator"}
    assert (ran.metrics["headline"]["before"], ran.metrics["headline"]["after"]) == (50.0, score)
    tested = [len(line["attempt"]["trajectory"]) for line in rollouts(ran, "evaluate") if "test" in line["sample"]]
    assert [sum(some) / 8 for some in (tested[:8], tested[8:])] == [3.75, steps]


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
