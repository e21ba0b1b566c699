"""The embedded reader as an agent on apps: it runs a lesson's code with the values and the APIs of its own task."""

import json
from itertools import product

from ace_bench.backbones.embedded.acting import next_step
from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Message, Turn
from tests.backbones.embedded.conftest import WRONG, advice_of, ask, read, render

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


def trajectory(*turns):
    return Transcript(tuple(Turn(thought="", action=code, observation=shown) for code, shown in turns)).text


def steps_taken():
    """Yield what it learns from an attempt, and its steps on tasks like the learnt one."""
    plum = trajectory((f'kind = "plum"\n{DONE}', "Done."))
    for shown in (
        *({"feedback": "", "labels": "none"}, {"feedback": WRONG, "labels": "correctness"}),
        {"trajectory": plum, "feedback": "The answer is correct.", "labels": "correctness"},
        {"trajectory": trajectory(("print(1)", "1"), (DONE, ""), ("print(2)", "2")), "feedback": "Correct."},
        {"gold": SOLUTION, "feedback": WRONG},
    ):
        yield (playbook := learnt(**shown))
    for success, gold in product((True, False), (f"apis.orchard.sing()\n{DONE}", None)):
        yield asked("extractor", trajectory=plum, success=success, gold=gold)
    for question in (TAUGHT, TAUGHT.replace("plum", "wild cherry"), 'Water all the "plum" old trees in my Orchard.'):
        yield said(opening(question))
        messages = opening(question, playbook)
        for output in (LISTED, "Execution failed. Traceback:\nException: no", "3"):
            yield (step := said(messages))
            messages = after(messages, step[1], output)
        yield said(messages)
    listing = SOLUTION.replace('apis.orchard.water_tree(tree_id=tree["tree_id"])', "pass").replace(
        "complete_task()", 'complete_task(answer=", ".join(tree["name"] for tree in trees))'
    )
    yield said(after(opening("How many plum trees?", learnt(gold=listing, feedback=WRONG)), "print(1)", "1"))
    messages = [
        Message(role="system", content=f"Call {DONE}.\n## Playbook\n{playbook}"),
        Message(role="user", content="Task: Of an example."),
        Message(role="assistant", content="```python\nprint(1)\n```"),
        Message(role="user", content=f"Output:\n```\n1\n```\n\nYour task is: {TAUGHT}"),
    ]
    yield from (said(messages), said(messages[:2]), said(messages[2:]), said([messages[3]]))
    yield read(f'{DONE}\nTask: Count.\n{{"operations": []}}')  # who studies does not act
    yield from (episode(attention=100), episode(attention=1), episode(attention=1, remembers=True))
    memory = Message(role="user", content="- step 3: api_docs.show_api_descriptions(app_name='orchard')")
    yield read([*opening(TAUGHT, playbook), memory], attention=1)


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


def test_steps_stay(snapshot):
    assert "".join(json.dumps(one) + "\n" for one in steps_taken()) == snapshot
