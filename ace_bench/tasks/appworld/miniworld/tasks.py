"""The tasks of the mini-world, read from ``scenarios.toml``: instructions, reference solutions and evaluations.

A key of a scenario holds for its three tasks, one of its kind for all scenarios of that kind, and one of a task for
that alone. ``constants`` names the values that begin the solution; ``solution`` lists blocks, by name or in full;
``mistake`` is the scenario's typical one; ``check`` is a test besides the tests of the answer, of the models that have
changed (``changes``) and of the records added. ``$name`` in a text is a value. ``answers`` has the right answers.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from textwrap import indent
from typing import Any, NamedTuple

from . import answers
from .people import NOW, SUPERVISORS, Person
from .tables import Row

SPLITS = ("train", "dev", "test_normal", "test_challenge")


class Test(NamedTuple):
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
    extra: Sequence[Row] = ()

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
            f"    with test({json.dumps(test.requirement)}):\n{indent(test.code.strip(), ' ' * 8)}\n"
            for test in self.tests
        )
        return f"{_EVALUATION}{blocks}    return test\n"


_EVALUATION = """import json


def evaluate(test, public_data, private_data, main_user, models, ground_truth_answer):
    predicted_answer = json.loads(models.end.supervisor.Task.all()[0].answer)
"""

_ADDED = """
added, updated, removed = models.changed_records("{model}")
test.case(sorted({fields} for e in added), "==", private_data.expected)
test.case(len(updated) + len(removed), "==", 0)
"""
"""The test that exactly the records of ``private_data.expected``, in sorted order, were added and none changed."""


def all_tasks() -> Iterator[Task]:
    """Yield every task of the mini-world."""
    book = tomllib.loads(Path(__file__).with_name("scenarios.toml").read_text(encoding="utf-8"))
    for scenario in book["scenarios"]:
        shared = {"constants": (), "changes": (), **book["kinds"].get(scenario["kind"], {}), **scenario}
        for number, settings in enumerate(scenario["tasks"], start=1):
            yield _read_task({**shared, **settings}, number, book)


def _read_task(values: answers.Values, number: int, book: Mapping[str, Any]) -> Task:
    expected = getattr(answers, values["kind"])(number - 1, values)
    mistake = values["mistake"]
    return Task(
        scenario=values["id"],
        split=values["split"],
        number=number,
        difficulty=values["difficulty"],
        instruction=_fill(values["instruction"], values),
        solution=_write_solution(values, {**book["blocks"], "login": _login(values["login"])}),
        tests=tuple(_tests(values, asks="answer" in expected)),
        slips=book["mistakes"][mistake] if isinstance(mistake, str) else mistake,
        **expected,
    )


def _fill(text: str, values: answers.Values) -> str:
    return Template(text).substitute(values).strip()


def _login(apps: Sequence[str]) -> str:
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


def _write_solution(values: answers.Values, blocks: Mapping[str, str]) -> str:
    """Return the engine's solution function: values from the instruction as constants, then the blocks."""
    constants = [f"{name} = {json.dumps(values[name])}" for name in values["constants"]]
    parts = ["\n".join(["# From the task.", *constants])] if constants else []
    parts += [_fill(blocks.get(_fill(block, values), block), values) for block in values["solution"]]
    body = indent("\n\n".join(parts), "    ")
    return f"def solution(apis, requester):\n{body}\n"


def _tests(values: answers.Values, *, asks: bool) -> Iterator[Test]:
    """Yield the tests of the answer, of the changed models, of what is particular to a scenario, of added records."""
    if "answer_check" in values:
        yield _read_test(values["answer_check"], values)
    else:
        claim = "answers match" if asks else "the task was completed without an answer"
        yield Test(f"assert {claim}.", "test.answer(predicted_answer, ground_truth_answer)", not asks)
    models = values["changes"]
    names = ", ".join(repr(model) for model in sorted(models))
    requirement = f"assert model changes {'match ' + ', '.join(models) if models else 'are none'}."
    code = f"test.case(models.changed_model_names(), '==', {f'{{{names}}}' if models else 'set()'})"
    yield Test(requirement, code, not models)
    if "check" in values:
        yield _read_test(values["check"], values)
    if added := values.get("added"):
        yield _read_test({"requirement": added["requirement"], "code": _ADDED.format(**added)}, values)


def _read_test(texts: Mapping[str, str], values: answers.Values) -> Test:
    return Test(f"assert {_fill(texts['requirement'], values)}.", texts["code"])
