"""Tool rules as tasks declare them, and what they make of actions: files and SQL by Python code, and SQL as actions."""

from ast import literal_eval

import yaml

from ace_bench.core.known_calls import KnownCalls, redundant_calls
from ace_bench.core.resources import config_folders, options
from ace_bench.core.settings import make_part
from ace_bench.core.tool_calls import read_action
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Turn
from tests.outcomes import as_texts, outcome, outcomes


def tools(name, **changes):
    """The rules of ``configs/tools``."""
    settings = yaml.safe_load(options("tools", config_folders())[name].read_text())
    return make_part(ToolRules, {**settings, **changes}, "agent.tools")


def calls(action, rules):
    return [(call.tool, call.shown, call.rule.access) for one in read_action(action, rules) for call in one.calls]


def turns(*actions):
    return [Turn(action=action, observation="done") for action in actions]


def known(steps, *, whole):
    """Return the step of the last lookup of a file that still holds, and whether it was printed."""
    calls = KnownCalls(tools("files_sql"))
    for number, action in enumerate(steps, start=1):
        for statement in read_action(action, calls.rules):
            calls.note(number, statement, worked=True, is_complete=whole)
    found = calls.find(read_action("open('a').read()", calls.rules)[0].calls[0])
    return found and (found.step, found.printed)


def seen_in(action):
    """Return the calls of an action, and what it may do beside."""
    read = read_action(action, tools("files_sql"))[-1]
    words = {"prints": read.printed is not None, "changes": read.changes, "opaque": read.opaque}
    return f"{calls(action, tools('files_sql'))} {' '.join(word for word, true in words.items() if true)}"


TOOL_LOOKUPS = [
    "[\"print(open('a').read())\"]",
    "[\"text = open('a').read()\"]",
    "['pass', \"text = open('a').read()\", \"print(open('a').read())\"]",
    "[\"print(open('a').read())\", \"text = open('a').read()\"]",
    "[\"print(open('b').read(), open('a').read())\"]",
    "[\"print(open('a').read()); mine(1)\"]",
    "[\"text = mine(open('a').read())\"]",
    "['class A: pass', \"print(open('a').read())\"]",
    "[\"print(open('a').read())\", 'open = 3']",
]


TOOL_REPEATED = [
    "['SELECT a FROM t', 'SELECT  a FROM t']",
    "['SELECT a FROM t', 'UPDATE t SET a = 1', 'SELECT a FROM t']",
    "[\"print(open('a').read())\", \"print(open('a').read())\", \"print(open('a').read())\"]",
    "[\"text = open('a').read()\", 'print(len(text))', \"print(open('a').read())\"]",
    "[\"print(open('a').read())\", \"open('a', 'w').write('x')\", \"print(open('a').read())\"]",
    "[\"db.execute('SELECT 1').fetchall()\", \"db = sqlite3.connect('b')\", \"db.execute('SELECT 1').fetchall()\"]",
    "['print(open(name).read())', 'print(open(name).read())']",
    "[\"for n in (1, 2): print(open('a').read())\", \"for n in (1, 2): print(open('a').read())\"]",
]


TOOL_ACTIONS = [
    "print(open('a.py').read())",
    "print(open('a.py', 'rb').read())",
    "print(open('a.py', 'w').read())",
    "print(Path('a.py').read_text())",
    'rows = db.execute("SELECT 1").fetchall()',
    "db.execute('DELETE FROM t')",
    "select name from t",
    "SELECT a FROM t",
    "DELETE FROM t",
    "print(open('a').read(), end='')",
    "print(open('a').read(), 1)",
    "print(open(name).read())",
    "text = sorted(open('a').read(), key=len)",
    "text = sorted(open('a').read(), key=mine)",
    "mine(1)",
    "import re; re.sub('a', mine, 'b')",
    "text.strip()",
    "text.__class__()",
    "mine.strip.run()",
    "text.run()",
    "print = mine",
    "import json",
    "import mine as print",
    "exec('x')",
    "class A: pass",
    "later = (mine(x) for x in y)",
    "reader = open",
    "print(",
]


def test_what_actions_look_up_and_may_change_and_what_stays_known(snapshot):
    rules = tools("files_sql")
    assert outcomes(seen_in, TOOL_ACTIONS) == snapshot
    assert outcomes(lambda case: redundant_calls(turns(*literal_eval(case)), rules), TOOL_REPEATED) == snapshot
    assert outcomes(lambda case: f"known: {known(literal_eval(case), whole=True)}", TOOL_LOOKUPS) == snapshot
    assert known(["print(open('a').read())"], whole=False) == (1, False)


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


WRONG_RULES = [
    {"call": None},
    {"action": "x"},
    {"fact": "(x"},
    {"fact": "x"},
    {"access": "maybe"},
    {"colour": "red"},
]


def test_a_rule_that_cannot_be_used_is_refused(snapshot):
    rule = {"call": "a.*", "access": "read", "category": "Others"}
    found = [(wrong, outcome(tools, "appworld", rules={"one": rule | wrong})) for wrong in WRONG_RULES]
    assert as_texts(found) == snapshot
