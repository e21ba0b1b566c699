"""From code that works to lessons: the words of the task give way to slots, and each statement gets its cues."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ace_rehearsal.reader.skills.acting.lessons import Slot, word_snippet
from ace_rehearsal.reader.skills.acting.statements import (
    UNREADABLE,
    Statement,
    parsed,
    read_statements,
    words_of,
)
from ace_rehearsal.reader.words import stem

_MOST_WORDS = 16
_STEP = re.compile(r"^### Step \d+$", re.MULTILINE)
_CODE = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
_OUTPUT = re.compile(r"Output:\n```\n(.*?)\n```", re.DOTALL)
_COMPLETION = "apis.supervisor.complete_task()"


def lessons_from(question: str, code: str) -> tuple[str, ...]:
    """Word what a solution of a task teaches; code that cannot be read teaches nothing."""
    statements = read_statements(code)
    slots = {statement.code: slot for statement in statements if (slot := _slot(statement, question)) is not None}
    rest = [statement for statement in statements if statement.code not in slots and statement.code != _COMPLETION]
    values = [_constant(code)[1] for code in slots]
    asked = words_of(_without(question, values))
    told = {word: [place for place, one in enumerate(rest) if one.mentions(stem(word))] for word in asked}
    # A constant stands for words of the task rather than explaining them.
    constants = {place for place, one in enumerate(rest) if _constant(one.code)[0]}
    open_words = [word for word, places in told.items() if constants.issuperset(places)][:_MOST_WORDS]
    snippets = [
        word_snippet(statement, [word for word in asked if place in told[word]], open_words)
        for place, statement in enumerate(rest)
        if statement.gives or statement.acts or statement.completes
    ]
    return tuple(dict.fromkeys([slot.worded for slot in slots.values()] + snippets))


def _slot(statement: Statement, question: str) -> Slot | None:
    """Return where a constant stands in the task; ``None`` for what is no constant or does not stand there."""
    name, value = _constant(statement.code)
    if not name or not value:
        return None
    quoted = re.search(rf'(\w*) ?"{re.escape(value)}"', question)
    if quoted:
        return Slot(name=name, before=quoted[1])
    bare = re.search(rf"([\w]+) ({re.escape(value)}\w{{0,2}})(?: (\w+))?(?!\w)", question)
    if bare is None:
        return None
    place = f"[]{bare[2].removeprefix(value)}"
    return Slot(name=name, pattern=" ".join(filter(None, (bare[1], place, bare[3]))))


def _constant(code: str) -> tuple[str, str]:
    try:
        body = parsed(code).body
    except UNREADABLE:
        return "", ""
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | int() | float() as value))]:
            return name, str(value)
    return "", ""


def _without(question: str, values: Sequence[str]) -> str:
    for value in values:
        question = re.sub(rf"{re.escape(value)}\w{{0,2}}", " ", question)
    return re.sub(r'"[^"\n]*"', " ", question)


def read_steps(trajectory: str) -> tuple[tuple[str, str], ...]:
    """Read the steps of an attempt as those who study it are shown them."""
    return tuple(map(read_step, _STEP.split(trajectory)[1:]))


def read_step(text: str) -> tuple[str, str]:
    """Return the code and the output of a step, "" for what is not there."""
    code, output = _CODE.search(text), _OUTPUT.search(text)
    return code[1] if code else "", output[1] if output else ""
