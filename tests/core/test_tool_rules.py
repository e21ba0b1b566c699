"""Tool rules as tasks declare them, and what they make of actions: files and SQL by Python code, and SQL as actions."""

import pytest
import yaml

from ace_bench.core.errors import ConfigError
from ace_bench.core.known_calls import KnownCalls, redundant_calls
from ace_bench.core.resources import config_folders, options
from ace_bench.core.settings import make_part
from ace_bench.core.tool_calls import read_action
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Turn


def tools(name, **changes):
    """The rules of ``configs/tools``."""
    settings = yaml.safe_load(options("tools", config_folders())[name].read_text())
    return make_part(ToolRules, {**settings, **changes}, "agent.tools")


def calls(action, rules):
    return [(call.tool, call.shown, call.rule.access) for one in read_action(action, rules) for call in one.calls]


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        ("print(open('a.py').read())", ("read", "'a.py'", "read")),
        ("print(open('a.py', 'rb').read())", ("read", "'a.py'", "read")),
        ("print(open('a.py', 'w').read())", ("open", "'a.py', 'w'", "write")),
        ("print(Path('a.py').read_text())", ("read", "'a.py'", "read")),
        ('rows = db.execute("SELECT 1").fetchall()', ("sql", "'SELECT 1'", "read")),
        ("db.execute('DELETE FROM t')", ("sql", "'DELETE FROM t'", "write")),
        ("select name from t", ("sql", "select name from t", "read")),
    ],
)
def test_files_and_queries(action, seen):
    assert calls(action, tools("files_sql")) == [seen]


@pytest.mark.parametrize(
    ("action", "printed", "changes", "opaque"),
    [
        ("print(open('a').read())", True, False, False),
        ("SELECT a FROM t", True, False, False),
        ("DELETE FROM t", False, True, False),
        ("print(open('a').read(), end='')", False, False, False),
        ("print(open('a').read(), 1)", False, False, False),
        ("print(open(name).read())", False, False, False),
        ("text = sorted(open('a').read(), key=len)", False, False, False),
        ("text = sorted(open('a').read(), key=mine)", False, True, False),
        ("mine(1)", False, True, False),
        ("import re\nre.sub('a', mine, 'b')", False, True, False),
        ("text.strip()", False, False, False),
        ("text.__class__()", False, True, False),
        ("mine.strip.run()", False, True, False),
        ("text.run()", False, True, False),
        ("print = mine", False, True, True),
        ("import json", False, False, False),
        ("import mine as print", False, True, True),
        ("exec('x')", False, True, True),
        ("class A: pass", False, True, True),
        ("later = (mine(x) for x in y)", False, True, True),
        ("reader = open", False, True, True),
        ("print(", False, True, False),
    ],
)
def test_what_an_action_may_change(action, printed, changes, opaque):
    read = read_action(action, tools("files_sql"))[-1]
    assert (read.printed is not None, read.changes, read.opaque) == (printed, changes, opaque)


def turns(*actions):
    return [Turn(action=action, observation="done") for action in actions]


@pytest.mark.parametrize(
    ("actions", "redundant"),
    [
        (["SELECT a FROM t", "SELECT  a FROM t"], 1),
        (["SELECT a FROM t", "UPDATE t SET a = 1", "SELECT a FROM t"], 0),
        (["print(open('a').read())"] * 3, 2),
        (["text = open('a').read()", "print(len(text))", "print(open('a').read())"], 1),
        (["print(open('a').read())", "open('a', 'w').write('x')", "print(open('a').read())"], 0),
        (["db.execute('SELECT 1').fetchall()", "db = sqlite3.connect('b')", "db.execute('SELECT 1').fetchall()"], 0),
        (["print(open(name).read())"] * 2, 0),  # depends on a variable
        (["for n in (1, 2):\n    print(open('a').read())"] * 2, 0),  # how often it ran is not known
    ],
)
def test_a_call_is_redundant_if_it_repeats_a_lookup_that_still_holds(actions, redundant):
    assert redundant_calls(turns(*actions), tools("files_sql")) == redundant


@pytest.mark.parametrize(
    ("steps", "whole", "known"),
    [
        (["print(open('a').read())"], True, (1, True)),
        (["print(open('a').read())"], False, (1, False)),
        (["text = open('a').read()"], True, (1, False)),
        (["pass", "text = open('a').read()", "print(open('a').read())"], True, (3, True)),
        (["print(open('a').read())", "text = open('a').read()"], True, (1, True)),
        (["print(open('b').read(), open('a').read())"], True, (1, False)),
        (["print(open('a').read())\nmine(1)"], True, None),  # it may have changed what was printed before
        (["text = mine(open('a').read())"], True, None),
        (["class A: pass", "print(open('a').read())"], True, None),
        (["print(open('a').read())", "open = 3"], True, None),
    ],
)
def test_a_lookup_is_known_with_its_last_step_that_printed_it_whole(steps, whole, known):
    calls = KnownCalls(tools("files_sql"))
    for number, action in enumerate(steps, start=1):
        for statement in read_action(action, calls.rules):
            calls.note(number, statement, shown=True, whole=whole)
    found = calls.find(read_action("open('a').read()", calls.rules)[0].calls[0])
    assert (found and (found.step, found.printed)) == known


def test_documentation_stays_known_whatever_is_changed():
    rules = tools("appworld")
    documentation = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
    assert redundant_calls(turns(documentation, f"apis.music.like(song_id=3)\n{documentation}"), rules) == 1
    assert redundant_calls(turns(f"x = mine(1)\n{documentation}", documentation), rules) == 1
    songs = "apis.music.show_songs(access_token=token, page_index=0)"
    assert calls(songs, rules) == [("music.show_songs", "page_index=0", "read")]
    assert redundant_calls(turns(songs, songs), rules) == 1
    assert redundant_calls(turns(songs, "token = 'another'", songs), rules) == 0
    assert redundant_calls(turns(songs.replace("0", "page"), songs.replace("0", "page")), rules) == 0
    assert calls(f"like = apis.music.like\n{songs}", rules)[0][0] == "music.show_songs"


def test_calls_are_read_in_their_order_and_long_queries_are_cut():
    text = "x" * 130
    (first, second) = calls(f"print(open('b').read(),\n open('{text}').read())", tools("files_sql"))
    assert first[1] == "'b'"
    assert second[1] == f"'{text}'"[:120]


def test_a_lookup_that_failed_is_not_redundant():
    failed = [Turn(action="SELECT a FROM t", observation="Traceback: no such table")] * 3
    assert redundant_calls(failed, tools("files_sql")) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"call": None}, "agent.tools.rules.one.call must be set, or else action"),
        ({"action": "x"}, "agent.tools.rules.one.call must be set, or else action"),
        ({"fact": "(x"}, "agent.tools.rules.one.fact=(x must be a regular expression"),
        ({"fact": "x"}, "agent.tools.rules.one.fact=x must have a group in round brackets"),
        ({"access": "maybe"}, "agent.tools.rules.one.access=maybe must be one of constant, read, open, write"),
        ({"colour": "red"}, "there is no setting agent.tools.rules.one.colour"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(changes, said):
    rule = {"call": "a.*", "access": "read", "category": "Others", **changes}
    with pytest.raises(ConfigError) as caught:
        tools("appworld", rules={"one": rule})
    assert str(caught.value).startswith(said)
