"""A task of the mini-world, and the texts of its reference solution and its evaluation.

Solutions consist of the same commented blocks in the same order (values from the instruction as constants, paging,
login, the work, completion), so that a lesson from one applies to others.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent, indent

from .people import NOW, SUPERVISORS, Person
from .tables import Table

SPLITS = ("train", "dev", "test_normal", "test_challenge")


@dataclass(frozen=True, kw_only=True)
class Test:
    """One requirement of an evaluation: its description, its Python statements, and whether doing nothing passes."""

    requirement: str
    code: str
    idle_passes: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a scenario.

    ``number`` counts from 1 within the scenario and selects the supervisor; ``answer`` is ``None`` for tasks without a
    question; ``private`` holds the expected values of the evaluation; ``slips`` are the replacements that turn the
    solution into one with the scenario's typical mistake; ``extra`` holds rows of this task's world only.
    """

    scenario: str
    split: str
    number: int
    difficulty: int
    instruction: str
    solution: str
    tests: Sequence[Test]
    slips: Sequence[tuple[str, str]]
    answer: float | str | None = None
    private: Mapping[str, object] = field(default_factory=dict)
    now: dt.datetime = NOW
    extra: Sequence[Table] = ()

    @property
    def id(self) -> str:
        """The engine's id: scenario and number."""
        return f"{self.scenario}_{self.number}"

    @property
    def supervisor(self) -> Person:
        """The person who gives the task."""
        return SUPERVISORS[self.number - 1]

    @property
    def apis(self) -> Sequence[str]:
        """The APIs that the solution uses, as ``app.api``."""
        return sorted(set(re.findall(r"\bapis\.(\w+\.\w+)", self.solution)))

    @property
    def apps(self) -> Sequence[str]:
        """The apps that the solution needs besides the supervisor's own."""
        return sorted({api.split(".")[0] for api in self.apis} - {"supervisor"})

    @property
    def naive(self) -> str:
        """The solution with the typical mistake; a slip that changes nothing is an error."""
        code = self.solution
        for right, wrong in self.slips:
            if right not in code:
                raise ValueError(f"the slip of task {self.id} does not occur in its solution: {right}")
            code = code.replace(right, wrong)
        return code

    @property
    def evaluation(self) -> str:
        """The engine's ``evaluation.py``."""
        blocks = "".join(
            f"    with test({json.dumps(test.requirement)}):\n{indent(_text(test.code), ' ' * 8)}\n"
            for test in self.tests
        )
        return f"{_EVALUATION}{blocks}    return test\n"


_EVALUATION = """import json


def evaluate(test, public_data, private_data, main_user, models, ground_truth_answer):
    predicted_answer = json.loads(models.end.supervisor.Task.all()[0].answer)
"""

FIRST_PAGE = (("page_limit=20, ", ""), ("page_index += 1", "break"))
"""The mistake of an agent that takes the first page of a list for the whole list."""

PAGES = """
# A list comes in pages: ask for one after the other until a page is empty.
def all_pages(api, **arguments):
    found, page_index = [], 0
    while page := api(page_index=page_index, page_limit=20, **arguments):
        found += page
        page_index += 1
    return found
"""

TODAY = """
# Dates are relative to the phone's date, not to the computer's.
from datetime import datetime, timedelta
today = datetime.strptime(apis.phone.get_current_date_and_time()["date"], "%A, %B %d, %Y").date()
"""

DONE = """
# Nothing was asked: complete the task without an answer.
apis.supervisor.complete_task()
"""


def answered(expression: str) -> str:
    """Return the block that completes a task with an answer."""
    return f"# Complete the task with the bare answer.\napis.supervisor.complete_task(answer={expression})"


def login(*apps: str) -> str:
    """Return the block that logs in to apps; ``<app>_token`` is the ``access_token`` of their APIs."""
    lines = [
        "# Log in: user name from the profile (the phone app wants the phone number), password from the supervisor.",
        "profile = apis.supervisor.show_profile()",
        'passwords = {a["account_name"]: a["password"] for a in apis.supervisor.show_account_passwords()}',
    ]
    for app in apps:
        user = "phone_number" if app == "phone" else "email"
        call = f'apis.{app}.login(username=profile["{user}"], password=passwords["{app}"])'
        lines.append(f'{app}_token = {call}["access_token"]')
    return "\n".join(lines)


def people(relationship: str) -> str:
    """Return the block that finds people by relationship; it needs the phone app's token and ``PAGES``."""
    return (
        "# The phone's contact book says who is who: notes and friend lists do not.\n"
        f"people = all_pages(apis.phone.search_contacts, relationship={relationship}, access_token=phone_token)\n"
        'emails = {person["email"] for person in people}'
    )


def solution(slots: Mapping[str, object], *blocks: str) -> str:
    """Return the engine's solution function: values from the instruction as constants, then the blocks."""
    words = "\n".join(f"{name} = {json.dumps(value)}" for name, value in slots.items())
    parts = [f"# From the task.\n{words}"] if slots else []
    body = "\n\n".join(parts + [_text(block) for block in blocks])
    return f"def solution(apis, requester):\n{indent(body, '    ')}\n"


ANSWER = Test(
    requirement="assert answers match.",
    code="test.answer(predicted_answer, ground_truth_answer)",
)

NO_ANSWER = Test(
    requirement="assert the task was completed without an answer.",
    code="test.answer(predicted_answer, ground_truth_answer)",
    idle_passes=True,
)


def changed(*models: str) -> Test:
    """Return the test that exactly these models have changed."""
    what = f"match {', '.join(models)}" if models else "are none"
    names = f"{{{', '.join(repr(model) for model in sorted(models))}}}" if models else "set()"
    return Test(
        requirement=f"assert model changes {what}.",
        code=f"test.case(models.changed_model_names(), '==', {names})",
        idle_passes=not models,
    )


def added(model: str, requirement: str, fields: str) -> Test:
    """Return the test that exactly the records of ``private_data.expected`` were added to a model and none changed.

    ``fields`` is an expression over a record ``e``; the expected list holds its values in sorted order.
    """
    code = f"""
        added, updated, removed = models.changed_records("{model}")
        test.case(sorted({fields} for e in added), "==", private_data.expected)
        test.case(len(updated) + len(removed), "==", 0)
    """
    return Test(requirement=f"assert {requirement}.", code=code)


def _text(block: str) -> str:
    return dedent(block).strip()
