"""Prompts in DSPy's forms, which name the fields of the reply: the reader as one who proposes instructions.

Inputs stand under lines such as ``[[ ## question ## ]]``; the reply has the same form, or is a JSON object. A
proposed instruction is the current one with the lessons that its examples teach. It does not grow beyond what
language models write when asked for a whole text: the oldest lessons give way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ace_bench.core.types import Message
from ace_rehearsal.reader.pieces import verdict
from ace_rehearsal.reader.skills import SKILLS, recognise
from ace_rehearsal.reader.skills.base import Review

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
_OUTPUTS = re.compile(r"^Your output fields are:\n((?:^\d+\. `\w+`.*\n?)+)", re.MULTILINE)
_NAME = re.compile(r"^\d+\. `(\w+)`", re.MULTILINE)
_JSON_REPLY = "Outputs will be a JSON object"
_DEMONSTRATION = re.compile(
    r"^Background: (?P<background>.*?)\nQuestion: (?P<question>.*?)\nReasoning: .*?\n"
    r"Answer: (?P<answer>.*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_REFERENCE = "Reference answer:"
_ROOM = 6_000
"""Characters an instruction has at most, unless it was longer before there were lessons in it."""

_REMARK = "Questions of one kind, each with a short answer in a fixed form."


def propose(messages: Sequence[Message]) -> str | None:
    """Reply to a prompt in one of DSPy's forms; ``None`` where it has none."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    outputs = _OUTPUTS.search(system)
    if outputs is None:
        return None
    given = _fields(next((m.content for m in reversed(messages) if m.role == "user"), ""))
    reply = {name: _value(name, given) for name in _NAME.findall(outputs[1])}
    if _JSON_REPLY in system:
        return json.dumps(reply)
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in reply.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _fields(text: str) -> Mapping[str, str]:
    starts = list(_FIELD.finditer(text))
    ends = [*(start.start() for start in starts), len(text)][1:]
    return {start[1]: text[start.end() : end].strip() for start, end in zip(starts, ends, strict=True)}


def _value(name: str, given: Mapping[str, str]) -> str:
    if name == "new_instruction":
        return _extended(given.get("current_instruction", ""), _of_attempts(given.get("examples_with_feedback", "")))
    if name == "proposed_instruction":
        return _extended(given.get("basic_instruction", ""), _of_demonstrations(given.get("task_demos", "")))
    return _REMARK


def _extended(instruction: str, lessons: Iterator[str]) -> str:
    known = [(skill, lesson) for skill in SKILLS for lesson in skill.insights(instruction)]
    own = instruction
    for _, lesson in known:
        own = own.replace(f"\n- {lesson}", "")
    for lesson in lessons:
        for skill in SKILLS:
            new = lesson in skill.insights(lesson) and not any(skill.repeats(lesson, old) for _, old in known)
            if new:
                known.append((skill, lesson))
    texts = [lesson for _, lesson in known]
    while len(texts) > 1 and len(own) + sum(len(text) + 3 for text in texts) > _ROOM:
        texts.pop(0)
    return own + "".join(f"\n- {text}" for text in texts)


def _of_attempts(text: str) -> Iterator[str]:
    """What attempts teach that were told what became of them (GEPA)."""
    for example in _examples(text):
        inputs, outputs = _mapping(example.get("Inputs")), _mapping(example.get("Generated Outputs"))
        feedback = str(example.get("Feedback", ""))
        told, _, gold = feedback.partition(_REFERENCE)
        _, case = recognise(str(inputs.get("background", "")), str(inputs.get("question", "")))
        review = Review(
            predicted=str(outputs.get("answer", "")),
            reasoning=str(outputs.get("reasoning", "")),
            gold=gold.strip() or None,
            correct=verdict(told),
            used=(),
        )
        yield from case.lesson(review).insights


def _examples(text: str) -> list[Mapping[str, Any]]:
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return [example for example in found if isinstance(example, dict)] if isinstance(found, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_demonstrations(text: str) -> Iterator[str]:
    """What right answers teach (MIPROv2)."""
    for shown in _DEMONSTRATION.finditer(text):
        _, case = recognise(shown["background"], shown["question"])
        yield from case.demonstrated(shown["answer"].strip())
