"""The ReAct agent in the real engine's mini-world, its replies scripted."""

import ast
import json

import pytest

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.loading import load_context
from ace_bench.core.types import GeneratorSpec
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.settings import decode
from ace_bench.tasks.appworld.task import SECTIONS
from ace_bench.tasks.catalog import make_task
from tests.agents.test_react_memory import TOOLS
from tests.agents.world import COMPLETE, PROMPTS, Replies, code, make_agent
from tests.launching import ROOT, composed
from tests.tasks.appworld.sharing import sharing

pytestmark = pytest.mark.skipif(
    not (ROOT / ".appworld" / "bin" / "python").exists(), reason="the AppWorld engine is not installed: make appworld"
)
LOOKUP = "print(apis.api_docs.show_api_doc(app_name='spotify', api_name='login'))"


@pytest.fixture(scope="module")
def appworld(pytestconfig):
    with sharing(pytestconfig):
        return make_task("appworld", source="sample", timeout=300, sample_allowed=True)


def solve(session, sample, lm, *, memory="execution", keep_text_replies=True, max_steps=10):
    base = GeneratorSpec(template="base", answer_format="text")
    settings = {"demonstrations": "default", "memory": memory, "keep_text_replies": keep_text_replies}
    agent = make_agent(base, max_steps=max_steps, **settings)
    return agent.solve(sample, session, NoContext(), lm, None)


@pytest.mark.slow
def test_an_episode_that_runs_the_reference_solution_is_right_and_one_that_only_completes_is_wrong(appworld):
    sample = appworld.samples("train")[0]
    solution = appworld.failing_grade(sample).gold
    lm = Replies(code(LOOKUP), code(LOOKUP), code(f"{solution}\nsolution(apis, requester)"), code("print('never')"))
    with appworld.open(sample) as session:
        attempt = solve(session, sample, lm)
        grade = session.grade(attempt.answer)
    assert grade.correct, grade.report
    assert (attempt.counters["steps"], attempt.counters["lookups_saved"]) == (3, 1)
    assert grade.detail["interactions"] == 2
    assert '"access_token": "string"' in attempt.trajectory[0].observation
    with appworld.open(sample) as session:
        attempt = solve(session, sample, Replies(code(COMPLETE)))
        assert session.finished
        assert not session.grade(attempt.answer).correct


EVERY_API = """
docs = [
    (app['name'], apis.api_docs.show_api_doc(app_name=app['name'], api_name=api['name']))
    for app in apis.api_docs.show_app_descriptions()
    for api in apis.api_docs.show_api_descriptions(app_name=app['name'])
]
print(len(docs), *(f"apis.{app}.{doc['api_name']}" for app, doc in docs if doc['method'] != 'GET'))
"""


@pytest.mark.slow
def test_tools_that_are_declared_to_read_only_read(appworld):
    with appworld.open(appworld.samples("train")[0]) as session:
        number, *changing = session.step(EVERY_API).split()
    assert int(number) > 400
    declared = {name.rpartition(".")[2] for name in changing if TOOLS.named(name).access != "write"}
    assert declared == {"login", *BALANCES}


BALANCES = ("show_person_balance", "show_people_balance")
"""Splitwise computes them, with arguments in the body of the request."""
LOG_IN = """
passwords = {one['account_name']: one['password'] for one in apis.supervisor.show_account_passwords()}
email = apis.supervisor.show_profile()['email']
token = apis.spotify.login(username=email, password=passwords['spotify'])['access_token']
"""
LIKED = "print(apis.spotify.show_liked_songs(access_token=token))"
UNLIKE = """
song = apis.spotify.show_liked_songs(access_token=token)[0]
apis.spotify.unlike_song(song_id=song['song_id'], access_token=token)
"""
SEARCHED = "print(apis.spotify.search_songs(query='a', page_limit=20, access_token=token))"


@pytest.mark.slow
def test_a_memory_never_shows_what_a_write_has_changed(appworld):
    codes = [LOG_IN, LIKED, SEARCHED, LIKED, UNLIKE, LIKED, LIKED, COMPLETE]
    with appworld.open(appworld.samples("train")[0]) as session:
        attempt = solve(session, appworld.samples("train")[0], Replies(*map(code, codes)))
    shown = [turn.observation for turn in attempt.trajectory]
    assert shown[1] != shown[5], "the world has changed"
    assert not shown[5].startswith("(from memory")
    assert [number for number, one in enumerate(shown) if one.startswith("(from memory")] == [3, 6]
    assert attempt.counters["lookups_saved"] == 2


@pytest.mark.slow
def test_the_worked_examples_call_only_what_the_engine_has(appworld):
    text = PROMPTS.render("demonstrations", {})[-1].content
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    calls = {
        (node.func.value.attr, node.func.attr, word.arg)
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("apis.")
        for word in node.keywords
    }
    assert len(calls) > 10
    with appworld.open(appworld.samples("train")[0]) as session:
        for app, api, argument in calls:
            doc = session.step(f"print(apis.api_docs.show_api_doc(app_name='{app}', api_name='{api}'))")
            assert argument in {parameter["name"] for parameter in json.loads(doc)["parameters"]}, (app, api)


@pytest.mark.slow
def test_a_demonstration_file_identifies_a_run_by_its_words(tmp_path):
    def digest(name, text):
        (tmp_path / name).write_text(text)
        overrides = ("task=appworld", "task.source=sample", f"agent.demonstrations={tmp_path / name}")
        return assemble(identify(decode(settle(*composed(f"results={tmp_path}", *overrides))))).metadata["digest"]

    one = digest("a.txt", "USER: wave\nASSISTANT: hi")
    assert digest("b.txt", "USER: wave\nASSISTANT: hi") == one
    assert digest("a.txt", "USER: wave\nASSISTANT: hello") != one


def test_the_shipped_playbook_fits_the_task(caplog):
    loaded = load_context(ROOT / "prompts" / "default" / "agent" / "playbook.txt", sections=SECTIONS, count=len)
    assert loaded.sections == SECTIONS
    assert loaded.size >= len(SECTIONS) - 1
    assert not caplog.records
