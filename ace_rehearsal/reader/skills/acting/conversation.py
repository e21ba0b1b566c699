"""What an agent's conversation says: the task, the lessons it is given, and what was done and shown so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_bench.core.types import Message
from ace_rehearsal.reader.layouts import parts_under_headings
from ace_rehearsal.reader.pieces import Form, Pieces, lessons_of, read_bullets, take_apart
from ace_rehearsal.reader.skills.acting.learning import lessons_from, read_step
from ace_rehearsal.reader.skills.base import Lesson

_MARK = "apis.supervisor.complete_task"
_QUESTION = re.compile(r"^<question>[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"^(?:[\w' ]{0,40}\b)?[Tt]ask(?: is)?:\s*(\S.*)$", re.MULTILINE)
_APP = re.compile(r"^- (\w+): (.*)$", re.MULTILINE)
_DEMONSTRATION = re.compile(r"^Question: (.*?)\nAnswer: (.*?)(?=\n\nQuestion: |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A task under way. ``apps`` are descriptions by name; ``steps`` are pairs of code and output."""

    question: str
    apps: Mapping[str, str]
    lessons: tuple[Lesson, ...]
    steps: tuple[tuple[str, str], ...]


def read_scene(messages: Sequence[Message]) -> Scene | None:
    """Understand an agent's conversation; ``None`` where the messages are none."""
    if not messages:
        return None
    place = next((n for n, m in enumerate(messages) if m.role == "user" and _QUESTION.search(m.content)), None)
    if place is None:
        return _read_dialogue(messages)
    if messages[0].role != "system" or _MARK not in messages[0].content:
        return None
    pieces = take_apart([messages[place]])
    return Scene(
        question=pieces.question,
        apps=dict(_APP.findall(pieces.background)),
        lessons=tuple(_lessons(pieces)),
        steps=_steps(messages[place + 1 :]),
    )


def _read_dialogue(messages: Sequence[Message]) -> Scene | None:
    """Understand a conversation without tags: instructions, worked examples, and at last a line that names the task."""
    if not any(_MARK in message.content for message in messages):
        return None
    asked = [(n, match) for n, m in enumerate(messages) if m.role == "user" and (match := _TASK.search(m.content))]
    if not asked:
        return None
    place, match = asked[-1]
    head = next((n for n, message in enumerate(messages) if message.role == "assistant"), place)
    given = [*messages[: min(head, place)], messages[place]]
    if take_apart(given).form is not Form.PLAIN:
        return None  # somebody is to study an attempt
    texts = [*(message.content for message in given[:-1]), given[-1].content[: match.start()]]
    shown = (parts_under_headings(text)[0].get("playbook", text) for text in texts)
    advice = Lesson(id="", content=given[-1].content[match.end() :])
    return Scene(
        question=match[1],
        apps=dict(_APP.findall("\n".join(texts))),
        lessons=(*(bullet for text in shown for bullet in read_bullets(text)), advice),
        steps=_steps(messages[place + 1 :]),
    )


def _steps(messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    pairs = zip(messages[::2], messages[1::2], strict=False)
    return tuple(read_step(f"{reply.content}\n{told.content}") for reply, told in pairs)


def _lessons(pieces: Pieces) -> Iterator[Lesson]:
    """Yield the entries of a playbook and all else that the prompt offers to learn from."""
    yield from lessons_of(pieces.get("playbook"), pieces.get("counters"))
    for tag in ("instruction", "cheatsheet", "reflection"):
        yield Lesson(id="", content=pieces.get(tag))
    yield from _demonstrated(pieces.get("demonstrations"))


@lru_cache(maxsize=8)
def _demonstrated(text: str) -> tuple[Lesson, ...]:
    return tuple(
        Lesson(id="", content="\n".join(lessons_from(question, solution)))
        for question, solution in _DEMONSTRATION.findall(text)
    )
