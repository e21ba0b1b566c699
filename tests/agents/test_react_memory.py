"""Execution memory: what it takes from a step, what it may answer, and what it must leave to the environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.agents.react.lookups import ToolConventions, read_code
from ace_bench.agents.react.memory import ExecutionMemory

LOGIN = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
SWAPPED = 'print( apis.api_docs.show_api_doc(api_name="login",\n    app_name="music") )'
APPS = "print(apis.api_docs.show_app_descriptions())"

TOOLS = ToolConventions(
    names="apis.*.*",
    lookups="apis.api_docs.show_*",
    hidden="access_token",
    failed="Execution failed",
    whole_chars=20_000,
)


def after(*steps):
    memory = ExecutionMemory(TOOLS)
    for number, (code, output) in enumerate(steps, start=1):
        memory.note(number, code, output)
    return memory


def everywhere(_step):
    return True


def nowhere(_step):
    return False


@pytest.mark.parametrize("again", [LOGIN, SWAPPED, f"{LOGIN}\n{SWAPPED}", f"{APPS}\n{LOGIN}"])
def test_lookups_made_before_are_known_however_they_are_spelt(again):
    memory = after((LOGIN, "doc of login"), (f"x = 1\n{APPS}", "list of apps"))
    assert "doc of login" in memory.recall(again, nowhere)
    assert "doc of login" not in memory.recall(again, everywhere)
    assert memory.saved == 2 * again.count("print")


@pytest.mark.parametrize(
    "code",
    [
        "print(apis.api_docs.show_api_doc(app_name='music', api_name='logout'))",  # never looked up
        f"{LOGIN}\nx = 1",  # does more than look up
        f"doc = {LOGIN[6:-1]}",  # prints nothing, sets a name
        "for _ in range(2):\n    " + LOGIN,
        "print(apis.api_docs.show_api_doc(app_name=app, api_name='login'))",  # depends on a variable
        "print(apis.api_docs.show_api_doc(**arguments))",
        "print(apis.music.show_songs())",
        "",
        "print(",
    ],
)
def test_everything_else_is_left_to_the_environment(code):
    memory = after((LOGIN, "doc of login"), ("print(apis.music.show_songs())", "[]"))
    assert memory.recall(code, everywhere) is None
    assert memory.saved == 0


@pytest.mark.parametrize("output", ["Execution failed. Traceback:\n...", "x" * 20_000 + "[cut]"])
def test_a_lookup_that_failed_or_may_have_been_cut_is_made_again(output):
    assert after((LOGIN, output)).recall(LOGIN, everywhere) is None


def test_a_finding_says_which_tool_was_asked_what_and_what_came_back():
    memory = after(
        (LOGIN, '{"parameters": [{"name": "username"}, {"name": "password"}]}'),
        ("t = apis.music.login(username='a', password='b')\nprint(apis.music.show_songs(access_token=t))", "[1, 2]\n"),
        ("apis.music.like(song_id=3)", 'Execution failed. Traceback:\n  line 1\nException: 422:\n{"message":"gone"}'),
        ("x = 1", "Execution successful."),
    )
    lookup, songs, failed = memory.findings
    assert (lookup.tool, lookup.step, lookup.success) == ("api_docs.show_api_doc", 1, True)
    assert lookup.fact == "names username, password"
    assert (songs.tool, songs.fact) == ("music.login, music.show_songs", "[1, 2]")
    assert "access_token" not in songs.query
    assert (failed.success, failed.fact) == (False, '{"message":"gone"}')
    assert memory.text.splitlines()[2] == '- step 3, failed: music.like(song_id=3): {"message":"gone"}'


def test_the_block_stays_compact_however_long_the_episode():
    memory = after(*[(f"print(apis.music.show_song(song_id={n}))", "word " * 3000) for n in range(200)])
    assert len(memory.text) < 24 * 600
    assert "song_id=199" in memory.text
    assert "song_id=0)" not in memory.text


@given(st.text(alphabet="print(apis.docs_show)='x',\n\\\0", max_size=120) | st.text(max_size=60), st.text(max_size=60))
def test_any_code_and_any_output_can_be_noted(code, output):
    memory = after((code, output))
    memory.recall(code, nowhere)
    assert all(len(line) < 700 for line in memory.text.splitlines())


@pytest.mark.parametrize("code", ["(" * 5000, "-" * 100_000 + "1", "x" + ".x" * 20_000, "'\\d'"])
def test_hostile_code_is_read_without_harm(code):
    assert read_code(code, TOOLS).calls == ()
