"""Prompts in DSPy's forms, which name the fields of the reply: the reader as proposer of instructions (GEPA, MIPROv2).

Inputs follow lines such as ``[[ ## question ## ]]``; the reply has the same form, or is a JSON object. A proposed
instruction is the current one plus the lessons of its examples, limited to the length that language models write: the
oldest lessons are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ace_bench.backbones.embedded.kinds import lessons_of_example
from ace_bench.backbones.embedded.lessons import Lesson, condense, find_lessons
from ace_bench.backbones.embedded.prompt_parser import verdict
from ace_bench.backbones.embedded.reflecting import Review, new_lessons, reflect
from ace_bench.backbones.embedded.words import pieces
from ace_bench.core.types import Message

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
_OUTPUTS = re.compile(r"^Your output fields are:\n((?:^\d+\. `\w+`.*\n?)+)", re.MULTILINE)
_NAME = re.compile(r"^\d+\. `(\w+)`", re.MULTILINE)
_JSON_REPLY = "Outputs will be a JSON object"
_DEMONSTRATION = re.compile(
    r"^Background: (.*?)\nQuestion: (.*?)\nReasoning: .*?\nAnswer: (.*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_REFERENCE = "Reference answer:"
_REMARK = "Questions of one kind, each with a short answer in a fixed form."


def propose(messages: Sequence[Message]) -> str | None:
    """Reply to a prompt in one of DSPy's forms; ``None`` if it has none."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    outputs = _OUTPUTS.search(system)
    if outputs is None:
        return None
    request = next((message.content for message in reversed(messages) if message.role == "user"), "")
    fields = {start[1]: text.strip() for start, text in pieces(_FIELD, request)}
    reply = {name: _value(name, fields) for name in _NAME.findall(outputs[1])}
    if _JSON_REPLY in system:
        return json.dumps(reply)
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in reply.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _value(name: str, fields: Mapping[str, str]) -> str:
    if name == "new_instruction":
        return _extend(fields.get("current_instruction", ""), _of_attempts(fields.get("examples_with_feedback", "")))
    if name == "proposed_instruction":
        demonstrations = (match.groups() for match in _DEMONSTRATION.finditer(fields.get("task_demos", "")))
        lessons = (
            lessons_of_example(background, question, answer.strip()) for background, question, answer in demonstrations
        )
        return _extend(fields.get("basic_instruction", ""), chain.from_iterable(lessons))
    return _REMARK


def _extend(instruction: str, lessons: Iterable[Lesson]) -> str:
    """An instruction with additional lessons, one per line; the oldest lessons are dropped if it gets too long."""
    old_lessons = [lesson.text for lesson in find_lessons(instruction)]
    base = instruction
    for text in old_lessons:
        base = base.replace(f"\n- {text}", "")
    texts = [*old_lessons, *(lesson.text for lesson in new_lessons(tuple(lessons), old_lessons))]
    return base + "".join(f"\n- {text}" for _, text in condense([("", text) for text in texts]))


def _of_attempts(text: str) -> Iterator[Lesson]:
    """The lessons of attempts with feedback (GEPA)."""
    for example in _examples(text):
        inputs, outputs = _mapping(example.get("Inputs")), _mapping(example.get("Generated Outputs"))
        feedback, _, gold = str(example.get("Feedback", "")).partition(_REFERENCE)
        review = Review(
            background=str(inputs.get("background", "")),
            question=str(inputs.get("question", "")),
            predicted=str(outputs.get("answer", "")),
            gold=gold.strip() or None,
            correct=verdict(feedback),
        )
        yield from reflect(review).lessons


def _examples(text: str) -> list[Mapping[str, Any]]:
    try:
        examples, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return [example for example in examples if isinstance(example, dict)] if isinstance(examples, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
