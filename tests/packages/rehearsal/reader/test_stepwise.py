"""The embedded reader as a careful and forgetful agent."""

import ast

from ace_rehearsal.reader.acting import next_step

CODE = """
# Log in.
profile = apis.supervisor.show_profile()
token = apis.music.login(username=profile["email"])

kind = "jazz"
for song in apis.music.show_songs(kind=kind):
    apis.music.like_song(song_id=song["song_id"])
apis.supervisor.complete_task()
"""


def episode(attention, *, remembers=False):
    """All steps of an episode, up to the one that completes the task."""
    steps = []
    while not any("complete_task()" in code for code, _ in steps):
        listed = "".join(f"- step 1: {code[11:-1]}: found\n" for code, _ in steps if "api_docs" in code)
        steps.append((next_step(CODE, steps, attention=attention, listed=listed if remembers else ""), "shown"))
    return [code for code, _ in steps]


def test_code_is_run_piece_by_piece_after_its_apis_were_looked_up():
    steps = episode(attention=100)
    assert steps[:3] == [
        "print(apis.api_docs.show_api_descriptions(app_name='supervisor'))",
        "print(apis.api_docs.show_api_doc(app_name='supervisor', api_name='show_profile'))",
        "# Log in.\nprofile = apis.supervisor.show_profile()",
    ]
    assert len({*steps}) == len(steps), "nothing is looked up twice"
    run = "\n".join(step for step in steps if "api_docs" not in step)
    assert ast.dump(ast.parse(run)) == ast.dump(ast.parse(CODE))


def test_it_forgets_what_it_looked_up_long_ago_unless_a_memory_lists_it():
    forgetful, remembering = episode(attention=1), episode(attention=1, remembers=True)
    assert len(forgetful) > len({*forgetful})
    assert remembering == episode(attention=100)
