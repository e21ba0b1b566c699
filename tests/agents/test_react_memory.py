"""Execution memory: what it takes from a step, what it may answer, and what it must leave to the environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.agents.memory import ExecutionMemory
from ace_bench.core.tool_calls import read_action
from tests.core.test_tool_rules import tools
from tests.outcomes import outcomes_by_name

LOGIN = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
APPS = "print(apis.api_docs.show_app_descriptions())"
PLAY = "print(apis.music.play(song_id=1))"
SONGS = "print(apis.music.show_songs(page_index=0, access_token=token))"
TOKEN = "token = apis.music.login(username='a', password='b')['access_token']"

TOOLS = tools("appworld")


def after(*steps):
    memory = ExecutionMemory(TOOLS)
    for number, (code, output) in enumerate(steps, start=1):
        memory.note(number, code, output)
    return memory


def test_a_file_is_noted_by_what_it_exports_and_a_long_list_by_how_much_more_it_has():
    memory = ExecutionMemory(tools("files_sql"))
    exported = "export interface Store {\nexport const SIZE = 3\nexport default class Disk {\nconst own = 1\n"
    memory.note(1, "print(open('store.ts').read())", exported)
    memory.note(2, "print(open('many.py').read())", "".join(f"def f{number}(): pass\n" for number in range(43)))
    assert "read('store.ts'): defines Store, SIZE, Disk\n" in memory.text
    assert memory.text.endswith("f38, f39, and 3 more")


def everywhere(_step):
    return True


def nowhere(_step):
    return False


def ask_again(code):
    memory = after((LOGIN, "doc of login"), (f"x = 1\n{APPS}", "list of apps"), (PLAY, "[]"))
    return memory.recall(code, nowhere), memory.recall(code, everywhere), memory.saved


def look_up_after(between, output="shown"):
    """What is known of two look-ups after some code: of songs, of other songs, and of documentation."""
    memory = after((TOKEN, "done"), (LOGIN, "doc of login"), (SONGS, "[1, 2]"), (between, output))
    return [memory.recall(code, nowhere) for code in (SONGS, SONGS.replace("0", "1"), LOGIN)]


# Look-ups that are answered from memory after LOGIN, APPS and a list of nothing played; None is left to the
# environment.
MEMORY = {
    "asked again": [
        "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))",
        'print( apis.api_docs.show_api_doc(api_name="login",\n    app_name="music") )',
        (
            "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))\nprint( "
            'apis.api_docs.show_api_doc(api_name="login",\n    app_name="music") )'
        ),
        (
            "print(apis.api_docs.show_app_descriptions())\nprint(apis.api_docs.show_api_doc(app_name='music', "
            "api_name='login'))"
        ),
        "print(apis.api_docs.show_api_doc(app_name='music', api_name='logout'))",
        "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))\nx = 1",
        "doc = apis.api_docs.show_api_doc(app_name='music', api_name='login')",
        "for _ in range(2):\n    print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))",
        "print(apis.api_docs.show_api_doc(app_name=app, api_name='login'))",
        "print(apis.api_docs.show_api_doc(**arguments))",
        "print(apis.music.play(song_id=1))",
        "",
        "print(",
    ],
    # Code between two equal look-ups: what a tool showed is known until something may have changed.
    "between two look-ups": [
        "print(apis.mail.show_letters(access_token=token))",
        "apis.mail.login(username='a', password='c')",
        "songs = [1]\nsongs.append(2)\nprint(len(songs), sorted(songs), json.dumps(songs))",
        "from datetime import datetime\nprint(datetime.now().strftime('%A'))",
        "best = max(apis.music.show_albums(access_token=token), key=lambda one: one['rating'])",
        "for page in range(3):\n    print(apis.music.show_albums(page_index=page, access_token=token))",
        # All that may have changed something, from here on.
        "apis.music.like(song_id=3)",
        "apis.mail.send(to='b')",
        "token = apis.music.login(username='other', password='b')['access_token']",
        "del token",
        "for token in ['x']:\n    pass",
        "helper()",
        "requester.post('/songs')",
        "like = apis.music.like",
        "print(list(map(apis.music.like, [3])))",
        "getattr(apis, 'music')",
        "f = lambda: apis.music.like(song_id=3)",
        "print(sorted([1], key=helper))",
        "class Songs(list):\n    def append(self, song):\n        pass",
        "songs.owner = 3",
        "from helpers import *",
        "sorted = helper",
        "%run helper.py",
        "if False:\n    apis.music.like(song_id=3)",
    ],
}


def test_what_is_answered_from_memory_is_as_recorded(snapshot):
    cases = {"asked again": ask_again, "between two look-ups": look_up_after}
    assert outcomes_by_name(cases, MEMORY) == snapshot
    failed = "Execution failed. Traceback:\nno"  # it may have run before it failed
    assert look_up_after("apis.music.like(song_id=3)", failed) == [None, None, "(from memory)\ndoc of login"]


@pytest.mark.parametrize(
    ("output", "known"), [("Execution failed. Traceback:\n...", False), ("x" * 20_000, True), ("x" * 20_001, False)]
)
def test_a_lookup_that_failed_or_may_have_been_cut_is_made_again(output, known):
    assert (after((LOGIN, output)).recall(LOGIN, everywhere) is not None) is known


def test_a_finding_says_which_tool_was_asked_what_and_what_came_back():
    memory = after(
        (LOGIN, '{"parameters": [{"name": "username"}, {"name": "password"}]}'),
        ("t = apis.music.login(username='a', password='b')\nprint(apis.music.show_songs(access_token=t))", "[1, 2]\n"),
        ("apis.music.like(song_id=3)", 'Execution failed. Traceback:\n  line 1\nException: 422:\n{"message":"gone"}'),
        ("x = 1", "Execution successful."),
    )
    lookup, login, songs, failed = memory.findings
    assert (lookup.tool, lookup.step, lookup.success) == ("api_docs.show_api_doc", 1, True)
    assert lookup.fact == "names username, password"
    assert (login.tool, songs.tool, songs.fact) == ("music.login", "music.show_songs", "[1, 2]")
    assert "access_token" not in songs.query
    assert (failed.success, failed.fact) == (False, '{"message":"gone"}')
    assert memory.text == (
        "API documentation already read:\n"
        "- step 1: api_docs.show_api_doc(app_name='music', api_name='login'): names username, password\n\n"
        "Previous look-ups:\n"
        "- step 2: music.show_songs(): [1, 2]\n\n"
        "Other findings:\n"
        "- step 2: music.login(username='a', password='b'): [1, 2]\n"
        '- step 3, failed: music.like(song_id=3): {"message":"gone"}'
    )


def test_the_block_stays_compact_however_long_the_episode():
    memory = after(*[(f"print(apis.music.show_song(song_id={n}))", "x" * (100 + n)) for n in range(1, 102)])
    facts = ["x" * (100 + n) for n in range(78, 101)] + ["x" * 200 + "..."]
    lines = [f"- step {n}: music.show_song(song_id={n}): {fact}" for n, fact in enumerate(facts, start=78)]
    assert memory.text == "\n".join(["Previous look-ups:", *lines])
    names = [f'{{"name": "n{n}"}}' for n in range(50)]
    (finding,) = after((LOGIN, f'{{"parameters": [{", ".join(names)}]}}')).findings
    assert finding.fact == f"names {', '.join(f'n{n}' for n in range(40))}, and 10 more"


@pytest.mark.slow
@given(st.text(alphabet="print(apis.docs_show)='x',\n\\\0", max_size=120) | st.text(max_size=60), st.text(max_size=60))
def test_any_code_and_any_output_can_be_noted(code, output):
    memory = after((code, output))
    memory.recall(code, nowhere)
    assert all(len(line) < 700 for line in memory.text.splitlines())


def test_after_code_that_may_act_unseen_only_documentation_is_known():
    hidden = "later = (apis.music.like(song_id=n) for n in (1, 2))"
    memory = after((hidden, "done"), (SONGS, "[]"), (LOGIN, "doc of login"), ("print(list(later))", "liked"))
    assert memory.recall(SONGS, everywhere) is None
    assert memory.recall(LOGIN, everywhere)


def test_an_output_that_also_shows_what_no_longer_holds_is_not_given_again():
    memory = after((f"{LOGIN}\n{SONGS}", "doc of login\n[1, 2]"), ("apis.music.like(song_id=3)", "done"))
    assert "see its output above" in memory.recall(LOGIN, everywhere)
    assert memory.recall(LOGIN, nowhere) is None


@pytest.mark.parametrize("code", ["(" * 5000, "-" * 100_000 + "1", "x" + ".x" * 20_000, "'\\d'"])
def test_hostile_code_is_read_without_harm(code):
    assert [call for statement in read_action(code, TOOLS) for call in statement.calls] == []
