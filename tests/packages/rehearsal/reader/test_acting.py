"""The embedded reader as an agent on apps: it runs a lesson's code with the values and the APIs of its own task."""

import ast
import json

import pytest

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Message, Turn
from ace_rehearsal.reader.acting import next_step
from tests.packages.rehearsal.reader.conftest import WRONG, advice_of, ask, read, render

APPS = "- orchard: An app about trees.\n- supervisor: Accounts and the task.\n"
PERSON = {"first_name": "Ida", "last_name": "Moor", "email": "ida@moor.example", "phone_number": "555"}
TAUGHT = 'Water all the "plum" trees in my Orchard tree library.'
SOLUTION = """
def solution(apis, requester):
    # From the task.
    kind = "plum"

    for tree in apis.orchard.show_tree_library(kind=kind):
        apis.orchard.water_tree(tree_id=tree["tree_id"])
    apis.supervisor.complete_task()
"""
LISTED = json.dumps([{"name": "show_tree_library"}, {"name": "show_old_trees"}, {"name": "water_tree"}])
DONE = "apis.supervisor.complete_task()"


def said(messages):
    """Thought and code of the reader's next step."""
    thought, _, code = read(messages).partition("\n\n```python\n")
    return thought, code.removesuffix("\n```")


def opening(question, playbook="(empty)"):
    fields = {"playbook": playbook, "reflection": "(none)", **PERSON}
    return list(render("generator", of="appworld", background=APPS, question=question, **fields))


def after(messages, code, output):
    reply = Message(role="assistant", content=f"I act.\n\n```python\n{code}\n```")
    return [*messages, reply, render("observation", of="appworld", output=output, memory="")[-1]]


def asked(role, **fields):
    return ask(role, of="appworld", **{"background": APPS, "question": TAUGHT, "trajectory": "(none)", **fields})


def learnt(**shown):
    """A playbook after one attempt was reflected upon."""
    added = asked("curator", reflection=advice_of(asked("reflector", **shown)))["operations"]
    lines = [f"[new-1] ({one['section']}) {one['content']}".replace("\n", "\n  ") for one in added]
    return "\n".join(lines)


def test_without_lessons_it_gives_up():
    assert said(opening(TAUGHT))[1] == DONE
    assert learnt(feedback="", labels="none") == learnt(feedback=WRONG, labels="correctness") == ""


def test_the_code_of_a_lesson_runs_with_the_values_of_another_task():
    messages = opening(TAUGHT.replace("plum", "wild cherry"), learnt(gold=SOLUTION, feedback=WRONG))
    thought, code = said(messages)
    assert "[new-1]" in thought
    assert code == "print(apis.api_docs.show_api_descriptions(app_name='orchard'))"
    messages = after(messages, code, LISTED)
    code = said(messages)[1]
    assert 'kind = "wild cherry"\n\nfor tree in apis.orchard.show_tree_library(kind=kind):\n    apis' in code
    failed = after(messages, code, "Execution failed. Traceback:\nException: no")
    assert said(failed)[1] == DONE, "what failed is not tried again"


def test_an_api_that_the_task_does_not_name_gives_way_to_one_that_it_names():
    messages = opening('Water all the "plum" old trees in my Orchard.', learnt(gold=SOLUTION, feedback=WRONG))
    code = said(after(messages, said(messages)[1], LISTED))[1]
    assert "in apis.orchard.show_old_trees(kind=kind)" in code


def test_an_attempt_that_worked_teaches_its_code():
    turns = (Turn(thought="", action=f'kind = "plum"\n{DONE}', observation="Done."),)
    shown = {"trajectory": Transcript(turns).text, "feedback": "The answer is correct.", "labels": "correctness"}
    assert 'kind = "plum"' in learnt(**shown)


@pytest.mark.parametrize("success", [True, False])
def test_of_a_failure_the_reference_is_learnt_and_of_a_success_what_it_did(success):
    turns = (Turn(thought="", action=DONE, observation=""),)
    task = {"trajectory": Transcript(turns).text, "success": success, "gold": f"apis.orchard.sing()\n{DONE}"}
    (item,) = asked("extractor", **task)["memory_items"]
    assert ("orchard.sing" in item["content"]) is not success


def test_a_conversation_without_tags():
    messages = [
        Message(role="system", content=f"Call {DONE}.\n## Playbook\n{learnt(gold=SOLUTION)}"),
        Message(role="user", content="Task: Of an example."),
        Message(role="assistant", content="```python\nprint(1)\n```"),
        Message(role="user", content=f"Output:\n```\n1\n```\n\nYour task is: {TAUGHT}"),
    ]
    assert "show_api_descriptions" in said(messages)[1]
    assert "```" not in read(f'{DONE}\nTask: Count.\n{{"operations": []}}'), "who studies does not act"


CODE = f"""
# Log in.
profile = apis.supervisor.show_profile()
token = apis.music.login(username=profile["email"])

kind = "jazz"
for song in apis.music.show_songs(kind=kind):
    apis.music.like_song(song_id=song["song_id"])
{DONE}
"""


def episode(attention, *, remembers=False):
    """All steps of a careful agent's episode, up to the one that completes the task."""
    steps = []
    while not any("complete_task()" in code for code, _ in steps):
        listed = "".join(f"- step 1: {code[11:-1]}: found\n" for code, _ in steps if "api_docs" in code)
        steps.append((next_step(CODE, steps, attention=attention, listed=listed if remembers else ""), "shown"))
    return [code for code, _ in steps]


def test_code_is_run_piece_by_piece_and_look_ups_of_long_ago_are_forgotten_unless_a_memory_lists_them():
    steps = episode(attention=100)
    assert steps[:3] == [
        "print(apis.api_docs.show_api_descriptions(app_name='supervisor'))",
        "print(apis.api_docs.show_api_doc(app_name='supervisor', api_name='show_profile'))",
        "# Log in.\nprofile = apis.supervisor.show_profile()",
    ]
    assert len({*steps}) == len(steps), "nothing is looked up twice"
    run = "\n".join(step for step in steps if "api_docs" not in step)
    assert ast.dump(ast.parse(run)) == ast.dump(ast.parse(CODE))
    forgetful = episode(attention=1)
    assert len(forgetful) > len({*forgetful})
    assert episode(attention=1, remembers=True) == steps
