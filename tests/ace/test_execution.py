"""Rules that learn from tool executions: what is worth learning, how an attempt ended, and what enters the playbook."""

from ace_bench.ace.rules import reflect_on_executions
from ace_bench.core.types import Attempt, Feedback, Rollout, Turn
from tests.agents.test_react_memory import TOOLS
from tests.agents.world import sample
from tests.outcomes import outcomes

FAILED = (
    'Execution failed. Traceback:\n  File "<python-input>", line 1, in <module>\n    {code}\n'
    'Exception: Response status code is 401:\n{{"message":"ida@example.com with account 5550100 is not authorized"}}'
)
SONG = "print(apis.spotify.show_song(song_id=7))"
TOKEN = "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']"
SONG_AGAIN = "print(apis.spotify.show_song(song_id=7, access_token=token))"
PROFILE = "apis.supervisor.show_profile()"
LOGGED_IN = "`supervisor.show_profile()`, then `spotify.login(password, username)`"
DONE = "apis.supervisor.complete_task(answer='Blue')"


def reflect(*codes, failing=(), fails=None, shown=FAILED, ended="completed", correct=None):
    """Reflect on steps of which some codes fail, or the one at a place."""
    failed = [code in failing or place == fails for place, code in enumerate(codes)]
    seen = [shown.format(code=code) if one else "{}" for code, one in zip(codes, failed, strict=True)]
    turns = [Turn(action=code, observation=one) for code, one in zip(codes, seen, strict=True)]
    rollout = Rollout(
        key="adapt/world-train-0/0",
        sample=sample(),
        context_digest="",
        trial=0,
        attempt=Attempt(answer=None, trajectory=tuple(turns), ended=ended),
        feedback=Feedback(correct=correct, message="", gold="the gold" if correct is not None else None),
        fault=None,
        calls=len(turns),
        seconds=0.0,
    )
    return reflect_on_executions(rollout, TOOLS)


def describe(case):
    codes, failing, ended, correct = case
    lesson = reflect(*codes, failing=failing, ended=ended, correct=correct)
    if lesson is None:
        return "nothing"
    assert lesson.text.startswith(f"Outcome: {lesson.outcome}")
    return lesson.outcome, lesson.tag, [(one.category, one.worked, one.content) for one in lesson.strategies]


# Code of each step, which of them fail, how the attempt ended and its verdict: the outcome, the vote and the lessons.
EXECUTIONS = [
    ([], [], "completed", None),
    (["print(apis.spotify.show_song(song_id=7))"], [], "completed", None),
    (["x = 1", "y = 2"], [], "completed", None),
    (
        ["print(apis.spotify.show_song(song_id=7))", "apis.supervisor.complete_task(answer='Blue')"],
        [],
        "completed",
        None,
    ),
    (
        ["print(apis.spotify.show_song(song_id=7))\napis.supervisor.complete_task(answer='Blue')"],
        [],
        "completed",
        None,
    ),
    (["print(apis.spotify.show_song(song_id=7))"], ["print(apis.spotify.show_song(song_id=7))"], "completed", None),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "completed",
        None,
    ),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        ["print(apis.spotify.show_song(song_id=7))"],
        "completed",
        None,
    ),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "steps",
        None,
    ),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        ["print(apis.spotify.show_song(song_id=7))"],
        "completed",
        True,
    ),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "completed",
        False,
    ),
    (
        [
            "print(apis.spotify.show_song(song_id=7))",
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "idle",
        False,
    ),
    (
        ["print(apis.spotify.show_song(song_id=7))", "apis.supervisor.complete_task(answer='Blue')"],
        ["print(apis.spotify.show_song(song_id=7))"],
        "completed",
        None,
    ),
    (
        ["print(apis.spotify.show_song(song_id=7))", "1 / 0", "apis.supervisor.complete_task(answer='Blue')"],
        ["1 / 0"],
        "completed",
        None,
    ),
    (
        [
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "completed",
        None,
    ),
    (
        [
            "token = apis.spotify.login(username='ida@example.com', password=secret)['access_token']",
            "print(apis.spotify.show_song(song_id=7, access_token=token))",
            "apis.supervisor.complete_task(answer='Blue')",
        ],
        [],
        "completed",
        False,
    ),
    (["x = ("], ["x = ("], "completed", None),
    (["\x00"], ["\x00"], "completed", None),
    (
        ["apis.spotify.show_song(*a, **{'b': 1}, c=("],
        ["apis.spotify.show_song(*a, **{'b': 1}, c=("],
        "completed",
        None,
    ),
]


def test_executions_teach_as_recorded(snapshot):
    assert outcomes(describe, EXECUTIONS) == snapshot


def test_a_recovery_is_worded_by_what_came_between_without_what_belongs_to_the_task():
    fails = (
        "`spotify.show_song(song_id)` can fail with: Exception: Response status code is 401: "
        '{"message":"... with account ... is not authorized"}\n'
    )
    for codes, words in (
        ((f"{PROFILE}\n{PROFILE}", TOKEN, f"{SONG_AGAIN}\n{DONE}"), f"(access_token, song_id)`, after {LOGGED_IN}."),
        ((SONG,), "(song_id)`."),
    ):
        (recovery,) = reflect("", SONG, *codes, fails=1, ended="steps").strategies
        assert (recovery.category, recovery.worked) == ("error_handling", True)
        assert recovery.content == f"{fails}It worked as `spotify.show_song{words}"


def test_an_error_of_more_than_200_characters_is_cut():
    def error(more):
        (warning,) = reflect(SONG, failing=(SONG,), shown=FAILED + "x" * more).strategies
        return warning.content.partition("with: ")[2].partition("\n")[0]

    room = 200 - len(error(0))
    assert error(room) == f"{error(0)}{'x' * room}"
    assert error(room + 1) == f"{error(room)}..."


def test_neither_gold_nor_values_of_the_task_are_repeated():
    lesson = reflect(SONG, TOKEN, SONG_AGAIN, DONE, failing=(SONG,), correct=True)
    assert len(lesson.strategies) == 2
    assert not any(secret in lesson.text for secret in ("the gold", "Blue", "ida@", "5550100", "secret", "song_id=7"))


def test_code_nested_too_deep_is_an_action_without_calls():
    assert reflect("apis" * 5000) is None
