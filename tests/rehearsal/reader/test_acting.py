"""The embedded reader as an agent on apps: what it does by itself, what it learns, and what it makes of errors.

The world is a small one of our own: an orchard whose trees come in pages, run in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Message, Turn
from ace_bench.store.prompts import PromptSet
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.skills.acting import Acting
from ace_rehearsal.reader.skills.acting.adapt import adapted, filters
from ace_rehearsal.reader.skills.acting.compose import Workshop
from ace_rehearsal.reader.skills.acting.documentation import read_documentation
from ace_rehearsal.reader.skills.acting.learning import lessons_from
from ace_rehearsal.reader.skills.acting.lessons import Slot, read_taught, same_lesson, spoken_lessons
from ace_rehearsal.reader.skills.acting.policy import act
from ace_rehearsal.reader.skills.acting.repairs import repairs_for
from ace_rehearsal.reader.skills.acting.statements import analysed, read_statements
from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Lesson, Review
from tests.rehearsal.reader.conftest import FIELDS, PROMPTS, advice_of

APPS = "- orchard: An app about trees.\n- phone: An app about contacts.\n- supervisor: Accounts and the task.\n"
AGENT = PromptSet(PROMPTS, task="appworld", prompt_group="agent")
PERSON = {"first_name": "Ida", "last_name": "Moor", "email": "ida@moor.example", "phone_number": "555"}
COUNT = "How many trees in my Orchard are there?"
WATER = "Water all the trees in my Orchard."
SOLUTION = """
def solution(apis, requester):
    # Trees come in pages.
    def all_pages(api, **arguments):
        found, page_index = [], 0
        while page := api(page_index=page_index, page_limit=20, **arguments):
            found += page
            page_index += 1
        return found

    profile = apis.supervisor.show_profile()
    passwords = {a["account_name"]: a["password"] for a in apis.supervisor.show_account_passwords()}
    orchard_token = apis.orchard.login(username=profile["email"], password=passwords["orchard"])["access_token"]

    trees = all_pages(apis.orchard.show_trees, access_token=orchard_token)

    apis.supervisor.complete_task(answer=len(trees))
"""


class Refused(Exception):
    """What an API says no with."""


class Orchard:
    """``apis`` with 23 trees, of which number 3 is wet already; ``user`` is the name its login wants."""

    def __init__(self, user: str = "email") -> None:
        self.user = PERSON["email" if user == "email" else "phone_number"]
        self.wet = {3}
        self.answers: list[object] = []
        self.orchard = self.supervisor = self.api_docs = self

    def show_api_descriptions(self, app_name: str) -> str:
        names = ("login", "show_trees", "water_tree") if app_name == "orchard" else ()
        return json.dumps([{"name": name, "description": "."} for name in names])

    def show_api_doc(self, app_name: str, api_name: str) -> str:
        wanted = {
            "login": ["username", "password"],
            "show_trees": ["access_token"],
            "water_tree": ["tree_id", "access_token"],
        }[api_name]
        parameters = [{"name": name, "required": True} for name in wanted]
        if api_name == "show_trees":
            parameters += [{"name": name, "required": False} for name in ("page_index", "page_limit")]
        success: object = [{"tree_id": 1, "kind": "string"}] if api_name == "show_trees" else {"message": "string"}
        schemas = {"success": success, "failure": {"message": "string"}}
        return json.dumps(
            {"app_name": app_name, "api_name": api_name, "parameters": parameters, "response_schemas": schemas}
        )

    def show_profile(self) -> dict[str, str]:
        return PERSON

    def show_account_passwords(self) -> list[dict[str, str]]:
        return [{"account_name": "orchard", "password": "elm"}]

    def login(self, username: str, password: str) -> dict[str, str]:
        if (username, password) != (self.user, "elm"):
            raise Refused("Response status code is 401: no")
        return {"access_token": "t"}

    def show_trees(self, access_token: str, page_index: int = 0, page_limit: int = 5) -> list[dict[str, object]]:
        assert access_token == "t"
        trees: list[dict[str, object]] = [{"tree_id": number, "kind": "plum"} for number in range(23)]
        return trees[page_index * page_limit : (page_index + 1) * page_limit]

    def water_tree(self, tree_id: int, access_token: str) -> None:
        assert access_token == "t"
        if tree_id in self.wet:
            raise Refused("Response status code is 422: it is wet already")
        self.wet.add(tree_id)

    def complete_task(self, answer: object = None) -> None:
        self.answers.append(answer)

    def run(self, code: str) -> str:
        shown = io.StringIO()
        try:
            with contextlib.redirect_stdout(shown):
                exec(code, self.__dict__.setdefault("names", {"apis": self}))  # what the reader wrote
        except (Refused, KeyError, TypeError) as error:
            line = next((line for line in code.splitlines() if "login(" in line and "401" in str(error)), "")
            kind = "Exception" if isinstance(error, Refused) else type(error).__name__
            return (
                f'Execution failed. Traceback:\n  File "<python-input>", line 1, in <module>\n{line}\n{kind}: {error}'
            )
        return shown.getvalue() or "Execution successful."


def opening(question: str, playbook: str = "(empty)", reflection: str = "(none)") -> list[Message]:
    fields = {"playbook": playbook, "counters": "", "reflection": reflection}
    return list(AGENT.render("generator", {"background": APPS, "question": question, **PERSON, **fields}))


def attempt(question: str, world: Orchard, playbook: str = "(empty)", reflection: str = "(none)") -> tuple[Turn, ...]:
    """Let the reader act in the world for as long as it takes, at most ten steps."""
    messages, turns, backbone = opening(question, playbook, reflection), [], EmbeddedBackbone()
    while not world.answers and len(turns) < 10:
        reply = backbone.complete(messages, role="generator", session="s").text
        thought, _, code = reply.partition("\n\n```python\n")
        turns.append(Turn(thought=thought, action=code.removesuffix("\n```"), observation=""))
        output = world.run(turns[-1].action)
        turns[-1] = Turn(thought=thought, action=turns[-1].action, observation=output)
        told = AGENT.render("observation", {"output": output, "memory": ""})[-1]
        messages += [Message(role="assistant", content=reply), told]
    return tuple(turns)


def asked(role: str, question: str, **fields: Any) -> dict[str, Any]:
    given = {**FIELDS, "background": APPS, "question": question, "trajectory": "(none)", **fields}
    text = EmbeddedBackbone().complete(AGENT.render(role, given), role=role, session="s").text
    reply: dict[str, Any] = json.loads(text)
    return reply


def learnt(question: str, turns: tuple[Turn, ...], playbook: str = "(empty)", **seen: Any) -> str:
    """Reflect and curate as ACE does, and return the playbook's lines."""
    reflection = asked("reflector", question, trajectory=Transcript(turns).text, playbook=playbook, **seen)
    reply = asked("curator", question, reflection=advice_of(reflection), playbook=playbook)
    added = [f"({one['section']}) {one['content']}".replace("\n", "\n  ") for one in reply["operations"]]
    return "\n".join(f"[new-{number:05d}] {text}" for number, text in enumerate(added, start=1))


def test_by_itself_it_takes_one_page_for_the_whole_list() -> None:
    world = Orchard()
    turns = attempt(COUNT, world)
    assert world.answers == [20]
    assert "show_api_descriptions" in turns[0].action


def test_a_reference_solution_teaches_another_task() -> None:
    world = Orchard()
    wrong = attempt(COUNT, world)
    playbook = learnt(COUNT, wrong, gold=SOLUTION, feedback="The answer is not correct.")
    again = Orchard()
    turns = attempt(COUNT, again, playbook)
    assert again.answers == [23]
    assert "[new-00001" in turns[-1].thought
    other = Orchard()
    attempt(WATER, other, playbook)
    assert other.answers == [None]
    assert other.wet == set(range(23))


def test_the_advice_of_a_reflection_is_heeded_in_a_retry() -> None:
    reflection = asked("reflector", COUNT, gold=SOLUTION, feedback="The answer is not correct.")
    world = Orchard()
    attempt(COUNT, world, reflection=advice_of(reflection))
    assert world.answers == [23]


@pytest.mark.parametrize("feedback", ["The task was marked as complete.", "The answer is not correct."])
def test_without_gold_the_documentation_shows_that_pages_were_left_out(feedback: str) -> None:
    playbook = learnt(COUNT, attempt(COUNT, Orchard()), labels="none", feedback=feedback)
    assert "page_index" in playbook
    assert playbook.count("[new-") == 1
    world = Orchard()
    attempt(COUNT, world, playbook)
    assert world.answers == [23]


def test_what_worked_is_kept_where_the_verdict_says_so() -> None:
    turns = attempt(COUNT, Orchard())
    kept = learnt(COUNT, turns, labels="correctness", feedback="The answer is correct.")
    assert "show_trees" in kept
    assert "show_trees" not in learnt(COUNT, turns, labels="none", feedback="The task was marked as complete.")


def test_a_refused_login_is_mended_and_remembered() -> None:
    world = Orchard(user="phone")
    turns = attempt(COUNT, world)
    assert world.answers == [20]
    assert sum("Execution failed" in turn.observation for turn in turns) == 1
    playbook = learnt(COUNT, turns, labels="none", feedback="The task was marked as complete.")
    again = Orchard(user="phone")
    turns = attempt(COUNT, again, playbook)
    assert again.answers == [23]
    assert not any("Execution failed" in turn.observation for turn in turns)


def test_an_action_that_is_refused_does_not_stop_the_others() -> None:
    world = Orchard()
    attempt(WATER, world)
    assert world.wet == set(range(5))


def test_a_task_beyond_the_reader_is_given_up() -> None:
    world = Orchard()
    turns = attempt("Prune whatever needs it.", world)
    assert world.answers == [None]
    assert len(turns) <= 2


def test_words_of_the_task_become_slots() -> None:
    code = 'kind = "plum"\n\nname = "Old Row"\n\ntrees = apis.orchard.show_trees(kind=kind, row=name)'
    lessons = lessons_from('Count my plums in the row "Old Row".', code)
    slots = [slot for lesson in lessons for slot in read_taught(lesson).slots]
    assert [slot.value('Count my pears in the row "Far East".') for slot in slots] == ["pear", "Far East"]
    assert not any("plum" in lesson or "Old Row" in lesson for lesson in lessons)


@pytest.mark.parametrize(
    ("question", "value"),
    [("Pick my pears in May.", "pear"), ("Pick my pears.", "pear"), ("Pick the pears.", None), ("", None)],
)
def test_a_slot_is_filled_where_its_surroundings_are_met(question: str, value: str | None) -> None:
    assert Slot(name="kind", pattern="my []s in").value(question) == value


def test_statements_say_what_they_need_and_give() -> None:
    first, second = read_statements("a, b = f(c)\n\n# Note.\nfor d in a:\n    apis.orchard.water_tree(tree_id=d)")
    assert (first.needs, first.gives) == ({"f", "c"}, {"a", "b"})
    assert (second.needs, second.gives, second.acts, second.note) == ({"a"}, set(), True, "Note.")
    assert read_statements("not python at all") == ()


def test_lessons_are_read_as_they_are_worded() -> None:
    lessons = lessons_from(COUNT, SOLUTION)
    shown = "\n".join(f"  {lesson}".replace("\n", "\n  ") for lesson in lessons)
    assert spoken_lessons(shown) == lessons
    assert all(same_lesson(lesson, lesson) for lesson in lessons)
    assert not same_lesson(lessons[0], lessons[1])


def test_entries_are_judged_by_the_reference() -> None:
    case = Acting().recognise(f"You can use these apps:\n{APPS}", COUNT)
    assert case is not None
    good, bad = (
        'For "trees": `trees = all_pages(apis.orchard.show_trees, access_token=orchard_token)`',
        'For "trees": `x = 1`',
    )
    used = (Lesson(id="a-1", content=good), Lesson(id="b-1", content=bad))

    def tags(gold: str | None, correct: bool | None) -> list[str]:
        review = Review(predicted="", reasoning="", gold=gold, correct=correct, used=used)
        return [tag for _, tag in case.lesson(review).tags]

    assert tags(SOLUTION, False) == [NEUTRAL, HARMFUL]
    assert tags(None, False) == tags(None, None) == [NEUTRAL, NEUTRAL]
    assert tags(None, True) == [HELPFUL, HELPFUL]


def test_a_missing_field_is_looked_for_under_its_other_name() -> None:
    repairs = repairs_for(["Execution failed. Traceback:\nKeyError: 'id'"])
    assert repairs.mended('x(tree["id"], kind["name"])') == 'x(tree["tree_id"], kind["name"])'


ROWS = {
    "app_name": "orchard",
    "api_name": "show_rows",
    "parameters": [
        {"name": "state", "required": False, "constraints": ["value in ['dry', 'wet']"]},
        {"name": "overdue", "required": False, "constraints": []},
    ],
    "response_schemas": {"success": [{"duration": 1, "planted_at": "2023-01-01T00:00:00"}]},
}
DOCUMENTED = read_documentation([("print(apis.api_docs.show_api_doc())", json.dumps(ROWS))])


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("Water overdue rows.", "rows = apis.orchard.show_rows(overdue=True)"),
        ("Water dry rows.", "rows = apis.orchard.show_rows(state='dry')"),
        ("Water dry and wet rows.", "rows = apis.orchard.show_rows()"),
    ],
)
def test_options_are_those_the_task_speaks_of(question: str, code: str) -> None:
    taught = read_taught('For "overdue, rows": `rows = apis.orchard.show_rows(overdue=True)`').statements[0]
    assert adapted(taught, question, DOCUMENTED).code == code


def test_conditions_the_task_does_not_speak_of_go() -> None:
    content = 'For "overdue, rows": `x = [row for row in rows if row["due_date"] and not row["wet"]]`'
    taught = read_taught(content).statements[0]
    assert adapted(taught, "Water overdue rows.", DOCUMENTED) == taught
    assert adapted(taught, "Water rows.", DOCUMENTED).code == "x = [row for row in rows if not row['wet']]"


def test_items_are_filtered_by_what_the_task_says_of_them() -> None:
    program = (analysed("rows = apis.orchard.show_rows()"), analysed("for row in rows: apis.orchard.water(row=row)"))
    period = read_taught('For "this, month": `start, end = "2023-05-01", "2023-05-31"`').statements

    def conditions(question: str) -> list[str]:
        return [one.condition for one in filters(program, period, question, DOCUMENTED)]

    assert conditions("Water rows longer than 4 minutes.") == ['item["duration"] > 4 * 60']
    assert conditions("Water rows of this month.") == ['str(start) <= item["planted_at"][:10] <= str(end)']
    assert conditions("Water rows of last month.") == []


def test_lessons_that_need_each_other_in_circles_come_to_an_end() -> None:
    names = "abcdefghijklmnop"
    circle = [f"{name} = {other} + {number}" for name in names for other in names for number in range(3)]
    goal = 'For "trees": `apis.supervisor.complete_task(answer=a)`'
    playbook = "\n".join(f'[x-{n:05d}] (s) For "trees": `{code}`' for n, code in enumerate(circle))
    world = Orchard()
    attempt(COUNT, world, f"{playbook}\n[y-00001] (s) {goal}")
    assert world.answers == [20]


@pytest.mark.parametrize("name", ["class", "1", "None"])
def test_a_slot_that_cannot_be_a_name_is_left_aside(name: str) -> None:
    world = Orchard()
    attempt(COUNT, world, f'[x-00001] (s) `{name}` is the word of the task at "[]" in "my [] are".')
    assert world.answers == [20]


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("What is the name of the tallest tree?", 'tree = max(trees, key=lambda tree: tree["height"])'),
        ("What is the name of the smallest tree?", 'tree = min(trees, key=lambda tree: tree["height"])'),
        ("What is the name of the most watered tree?", "tree = max(trees, key=lambda tree: apis.orchard.drunk(tree))"),
    ],
)
def test_variants_of_a_statement_are_told_apart_by_the_words_they_came_with(question: str, code: str) -> None:
    lessons = []
    for word, key in (
        ("tallest", 'max(trees, key=lambda tree: tree["height"])'),
        ("smallest", 'min(trees, key=lambda tree: tree["height"])'),
        ("most watered", "max(trees, key=lambda tree: apis.orchard.drunk(tree))"),
    ):
        solution = f'trees = 1\n\ntree = {key}\n\napis.supervisor.complete_task(answer=tree["name"])'
        lessons += lessons_from(f"What is the name of the {word} tree?", solution)
    pool = tuple(part for lesson in lessons for part in read_taught(lesson).statements)
    programs = Workshop(question=question, pool=pool).programs(("orchard",))
    assert code in [statement.code for statement in programs[0]]


def test_worked_examples_teach_too() -> None:
    shown = f"Question: {COUNT}\nAnswer: {SOLUTION.strip()}"
    fields = {"background": APPS, "question": COUNT, "demonstrations": shown, **PERSON}
    messages = list(AGENT.render("demonstrated", fields))
    descriptions = "print(apis.api_docs.show_api_descriptions(app_name='orchard'))"
    told = Message(role="user", content="Output:\n```\n[]\n```")
    reply = act([*messages, Message(role="assistant", content=f"```python\n{descriptions}\n```"), told])
    assert reply is not None
    assert "show_trees" in reply


_TEXT = st.text(alphabet=st.sampled_from("apis.x(=)[]{}'\"`\n: #For0_é\x00"), max_size=120)


@settings(max_examples=150, deadline=None)
@given(question=_TEXT, lesson=_TEXT, code=_TEXT, output=_TEXT)
def test_any_conversation_gets_a_reply_with_code(question: str, lesson: str, code: str, output: str) -> None:
    playbook = f'[a-00001] (s) For "{lesson}": `{code}`\n[a-00002] (s) `{lesson}` is the word of the task at "[]".'
    said = Message(role="assistant", content=f"```python\n{code}\n```")
    told = Message(role="user", content=f"Output:\n```\nExecution failed {output}\n```")
    reply = act([*opening(f"How {question}", playbook, lesson), said, told, said])
    assert reply is not None
    assert "```python\n" in reply
    analysed_or_not = [read_statements(text) for text in (question, lesson, code)]
    assert all(isinstance(one, tuple) for one in analysed_or_not)
    assert all(isinstance(one, str) for one in lessons_from(question, code))
    assert isinstance(spoken_lessons(lesson), tuple)
    assert analysed("x = 1").gives == {"x"}
