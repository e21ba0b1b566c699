"""Rules that learn from tool executions: what is worth learning, how an attempt ended, and what enters the playbook."""

import pytest

from ace_bench.core.types import Attempt, Feedback, Rollout, Turn
from ace_bench.methods.ace_variants.rules import reflect_on_executions
from tests.agents.test_react_memory import TOOLS
from tests.agents.world import sample

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


WORTH = [
    ((), (), False),
    ((SONG,), (), False),
    (("x = 1", "y = 2"), (), False),
    ((SONG, DONE), (), True),
    ((f"{SONG}\n{DONE}",), (), True),
    ((SONG,), (SONG,), True),
]


@pytest.mark.parametrize(("codes", "failing", "worth"), WORTH)
def test_a_single_look_up_teaches_nothing_two_calls_or_a_failure_do(codes, failing, worth):
    assert (reflect(*codes, failing=failing) is not None) is worth


OUTCOMES = [  # ended, verdict, failing steps, outcome, vote
    ("completed", None, (), "success", "helpful"),
    ("completed", None, (SONG,), "partial", "neutral"),
    ("steps", None, (), "error", "harmful"),
    ("completed", True, (SONG,), "success", "helpful"),
    ("completed", False, (), "partial", "neutral"),
    ("idle", False, (), "error", "harmful"),
]


@pytest.mark.parametrize(("ended", "correct", "failing", "outcome", "vote"), OUTCOMES)
def test_the_outcome_follows_the_verdict_or_where_it_is_hidden_the_executions(ended, correct, failing, outcome, vote):
    lesson = reflect(SONG, TOKEN, SONG_AGAIN, DONE, failing=failing, ended=ended, correct=correct)
    assert (lesson.outcome, lesson.tag) == (outcome, vote)
    assert lesson.text.startswith(f"Outcome: {outcome}")


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


def test_a_failure_without_a_recovery_is_a_warning_and_one_of_plain_python_none():
    (warning,) = reflect(SONG, DONE, failing=(SONG,)).strategies
    assert not warning.worked
    assert warning.content.endswith("\nCheck what it takes before calling it.")
    assert reflect(SONG, "1 / 0", DONE, failing=("1 / 0",)).strategies == ()


def test_an_error_of_more_than_200_characters_is_cut():
    def error(more):
        (warning,) = reflect(SONG, failing=(SONG,), shown=FAILED + "x" * more).strategies
        return warning.content.partition("with: ")[2].partition("\n")[0]

    room = 200 - len(error(0))
    assert error(room) == f"{error(0)}{'x' * room}"
    assert error(room + 1) == f"{error(room)}..."


def test_a_success_teaches_its_order_of_calls_under_the_app_it_ended_in():
    (order,) = reflect(TOKEN, SONG_AGAIN, SONG_AGAIN, DONE).strategies
    assert order.category == "spotify"
    assert order.content == (
        "This order of calls worked: `spotify.login(password, username)`, then "
        "`spotify.show_song(access_token, song_id)`, then `supervisor.complete_task(answer)`."
    )
    assert reflect(TOKEN, SONG_AGAIN, DONE, correct=False).strategies == ()


def test_neither_gold_nor_values_of_the_task_are_repeated():
    lesson = reflect(SONG, TOKEN, SONG_AGAIN, DONE, failing=(SONG,), correct=True)
    assert len(lesson.strategies) == 2
    assert not any(secret in lesson.text for secret in ("the gold", "Blue", "ida@", "5550100", "secret", "song_id=7"))


@pytest.mark.parametrize("code", ["x = (", "\0", "apis.spotify.show_song(*a, **{'b': 1}, c=(", "apis" * 5000])
def test_code_that_cannot_be_read_is_an_action_without_calls(code):
    assert reflect(code) is None
    assert reflect(code, failing=(code,)).strategies == ()
