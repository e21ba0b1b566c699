"""The embedded reader as an agent on apps: it runs a lesson's code with the values and the APIs of its own task."""

from __future__ import annotations

import json
from typing import Any

from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Message, Turn
from ace_bench.store.prompts import PromptSet
from ace_rehearsal.reader import EmbeddedBackbone
from tests.packages.rehearsal.reader.conftest import FIELDS, PROMPTS, WRONG, advice_of

APPS = "- orchard: An app about trees.\n- supervisor: Accounts and the task.\n"
AGENT = PromptSet(*PROMPTS, task="appworld", prompt_group="agent")
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


def said(messages: list[Message]) -> tuple[str, str]:
    """Thought and code of the reader's next step."""
    thought, _, code = EmbeddedBackbone().complete(messages, role="", session="").text.partition("\n\n```python\n")
    return thought, code.removesuffix("\n```")


def opening(question: str, playbook: str = "(empty)", reflection: str = "(none)") -> list[Message]:
    fields = {"playbook": playbook, "counters": "", "reflection": reflection}
    return list(AGENT.render("generator", {"background": APPS, "question": question, **PERSON, **fields}))


def after(messages: list[Message], code: str, output: str) -> list[Message]:
    reply = Message(role="assistant", content=f"I act.\n\n```python\n{code}\n```")
    return [*messages, reply, AGENT.render("observation", {"output": output, "memory": ""})[-1]]


def asked(role: str, **fields: Any) -> dict[str, Any]:
    given = {**FIELDS, "background": APPS, "question": TAUGHT, "trajectory": "(none)", **fields}
    reply: dict[str, Any] = json.loads(EmbeddedBackbone().complete(AGENT.render(role, given), role="", session="").text)
    return reply


def learnt(**shown: Any) -> str:
    """A playbook after one attempt was reflected upon."""
    added = asked("curator", reflection=advice_of(asked("reflector", **shown)))["operations"]
    lines = [f"[new-1] ({one['section']}) {one['content']}".replace("\n", "\n  ") for one in added]
    return "\n".join(lines)


def test_without_lessons_it_gives_up() -> None:
    assert said(opening(TAUGHT))[1] == "apis.supervisor.complete_task()"
    assert learnt(feedback="", labels="none") == learnt(feedback=WRONG, labels="correctness") == ""


def test_the_code_of_a_lesson_runs_with_the_values_of_another_task() -> None:
    messages = opening(TAUGHT.replace("plum", "wild cherry"), learnt(gold=SOLUTION, feedback=WRONG))
    thought, code = said(messages)
    assert "[new-1]" in thought
    assert code == "print(apis.api_docs.show_api_descriptions(app_name='orchard'))"
    messages = after(messages, code, LISTED)
    code = said(messages)[1]
    assert 'kind = "wild cherry"\n\nfor tree in apis.orchard.show_tree_library(kind=kind):\n    apis' in code
    assert said(after(messages, code, "Execution failed. Traceback:\nException: no"))[1] == (
        "apis.supervisor.complete_task()"
    ), "what failed is not tried again"


def test_an_api_that_the_task_does_not_name_gives_way_to_one_that_it_names() -> None:
    messages = opening('Water all the "plum" old trees in my Orchard.', learnt(gold=SOLUTION, feedback=WRONG))
    code = said(after(messages, said(messages)[1], LISTED))[1]
    assert "in apis.orchard.show_old_trees(kind=kind)" in code


def test_an_attempt_that_worked_teaches_its_code() -> None:
    turns = (Turn(thought="", action='kind = "plum"\napis.supervisor.complete_task()', observation="Done."),)
    playbook = learnt(trajectory=Transcript(turns).text, feedback="The answer is correct.", labels="correctness")
    assert 'kind = "plum"' in playbook


def test_a_conversation_without_tags() -> None:
    messages = [
        Message(
            role="system", content=f"Call {'apis.supervisor.complete_task()'}.\n## Playbook\n{learnt(gold=SOLUTION)}"
        ),
        Message(role="user", content="Task: Of an example."),
        Message(role="assistant", content="```python\nprint(1)\n```"),
        Message(role="user", content=f"Output:\n```\n1\n```\n\nYour task is: {TAUGHT}"),
    ]
    assert "show_api_descriptions" in said(messages)[1]
    studied = [Message(role="user", content='apis.supervisor.complete_task()\nTask: Count.\n{"operations": []}')]
    assert "```" not in EmbeddedBackbone().complete(studied, role="", session="").text, "who studies does not act"
